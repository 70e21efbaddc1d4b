CREATE MATERIALIZED VIEW v AS SELECT id, , shop FROM orders
-- error: 1:31: there is an empty column between two commas
