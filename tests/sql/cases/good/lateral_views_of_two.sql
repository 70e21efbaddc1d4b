CREATE MATERIALIZED VIEW lateral_views_of_two AS
SELECT id, tag, sku FROM orders LATERAL VIEW explode(tags) t AS tag LATERAL VIEW OUTER
  inline(lines) l AS sku, qty, price WHERE tag <> sku OR sku IS NULL;
