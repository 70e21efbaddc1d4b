SELECT id FROM orders
-- error: 1:1: a query alone defines nothing; ask it with `headrace sql`, or write CREATE MATERIALIZED VIEW name AS before it
