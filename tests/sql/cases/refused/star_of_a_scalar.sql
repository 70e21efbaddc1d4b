CREATE MATERIALIZED VIEW v AS SELECT shop.* FROM orders
-- error: 1:38: shop is STRING, not a STRUCT; name what to select of it
