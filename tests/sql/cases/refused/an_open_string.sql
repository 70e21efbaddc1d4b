CREATE MATERIALIZED VIEW v AS SELECT 'id FROM orders
-- error: 1:38: the quote or comment that begins here is never closed
