CREATE MATERIALIZED VIEW v AS SELECT inline(lines) AS (sku, qty) FROM orders
-- error: 1:38: inline() makes 3 columns, and has 2 names; write inline(...) AS (sku, qty, price), or LATERAL VIEW inline(...) t AS sku, qty, price
