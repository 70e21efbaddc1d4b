-- oracle: spark
CREATE MATERIALIZED VIEW fields_of_lines AS
SELECT id, get(lines, 0).sku AS first, lines.qty AS quantities, struct(id, qty).qty AS again,
  named_struct('shop', shop, 'n', qty) AS made FROM orders;
