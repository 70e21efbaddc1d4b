CREATE MATERIALIZED VIEW v AS SELECT upper(shop FROM orders
-- error: 1:43: ( is never closed; write ) before FROM
