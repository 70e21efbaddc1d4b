CREATE MATERIALIZED VIEW v AS WITH RECURSIVE r AS (SELECT id FROM orders) SELECT id FROM r
-- error: 1:36: recursive queries are not supported; remove RECURSIVE
