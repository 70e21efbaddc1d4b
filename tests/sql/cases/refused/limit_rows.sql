CREATE MATERIALIZED VIEW v AS SELECT id FROM orders LIMIT 10
-- error: 1:53: LIMIT is not part of a view, whose rows have no order; write it when you read the view
