CREATE MATERIALIZED VIEW lines_per_shop AS
SELECT shop, line.sku AS sku, sum(line.qty) AS qty, sum(line.price * line.qty) AS total FROM
  orders LATERAL VIEW explode(lines) l AS line GROUP BY shop, line.sku;
