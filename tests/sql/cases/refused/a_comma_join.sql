CREATE MATERIALIZED VIEW v AS SELECT orders.id FROM orders, clicks
-- error: 1:59: joins are not built yet; join when you read the views
