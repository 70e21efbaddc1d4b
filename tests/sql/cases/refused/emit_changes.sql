CREATE MATERIALIZED VIEW v AS SELECT id FROM orders EMIT CHANGES
-- error: 1:53: EMIT CHANGES is what a view does anyway; remove it
