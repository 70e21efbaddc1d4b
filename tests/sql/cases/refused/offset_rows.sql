CREATE MATERIALIZED VIEW v AS SELECT id FROM orders OFFSET 10
-- error: 1:53: OFFSET is not part of a view, whose rows have no order; write it when you read the view
