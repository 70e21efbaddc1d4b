CREATE MATERIALIZED VIEW v AS SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.id = c.id
-- error: 1:65: joins are not built yet; join when you read the views
