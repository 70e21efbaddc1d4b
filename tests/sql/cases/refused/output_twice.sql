CREATE MATERIALIZED VIEW v AS SELECT id, shop AS ID FROM orders
-- error: 1:50: output ID stands twice (upper and lower case do not count); rename one
