CREATE MATERIALIZED VIEW v AS
WITH RECURSIVE a AS (SELECT id FROM orders UNION ALL SELECT id FROM a) SELECT id FROM a
-- error: 2:6: recursive queries are not supported; remove RECURSIVE
