CREATE MATERIALIZED VIEW "v" AS SELECT id FROM orders
-- error: 1:26: the name of the view is expected here, not "v"
