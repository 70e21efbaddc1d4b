CREATE MATERIALIZED VIEW v AS SELECT orders.id FROM orders JOIN clicks ON orders.id = clicks.id
-- error: 1:60: joins are not built yet; join when you read the views
