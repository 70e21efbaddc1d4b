CREATE MATERIALIZED VIEW v AS SELECT id, explode(shop) AS s FROM orders
-- error: 1:50: explode() takes an ARRAY or a MAP, and shop is STRING
