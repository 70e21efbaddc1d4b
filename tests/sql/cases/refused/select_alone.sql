SELECT id FROM orders
-- error: 1:1: a query by itself is not a definition; run it with `headrace sql`, or write CREATE MATERIALIZED VIEW name AS before it
