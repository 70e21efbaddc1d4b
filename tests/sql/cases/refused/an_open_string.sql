CREATE MATERIALIZED VIEW v AS SELECT 'id FROM orders
-- error: 1:38: cannot be read from here: a quote or comment that opens has no end
