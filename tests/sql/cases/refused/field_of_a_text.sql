CREATE MATERIALIZED VIEW v AS SELECT shop.name AS name FROM orders
-- error: 1:43: shop is STRING and has no fields; remove .name
