CREATE MATERIALIZED VIEW v AS SELECT id, shop AS ID FROM orders
-- error: 1:50: output ID occurs twice (names are not case-sensitive); rename one
