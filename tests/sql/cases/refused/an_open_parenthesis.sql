CREATE MATERIALIZED VIEW v AS SELECT (id FROM orders
-- error: 1:38: ( is never closed; write ) before FROM
