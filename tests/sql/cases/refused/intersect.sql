CREATE MATERIALIZED VIEW v AS SELECT id FROM orders INTERSECT SELECT id FROM clicks
-- error: 1:53: INTERSECT is not built yet; make a view of each query, and compare them when you read
