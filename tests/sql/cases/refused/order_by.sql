CREATE MATERIALIZED VIEW v AS SELECT id FROM orders ORDER BY id
-- error: 1:53: ORDER BY is not part of a view, whose rows have no order; write it when you read the view
