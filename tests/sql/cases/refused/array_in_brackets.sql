CREATE MATERIALIZED VIEW v AS SELECT [qty, 2] AS both FROM orders
-- error: 1:38: an array is written array(qty, 2)
