CREATE MATERIALIZED VIEW v AS SELECT id, row_number() OVER (PARTITION BY shop ORDER BY ts) AS n FROM orders
-- error: 1:42: row_number() ranks rows, which is not built yet; rank them when you read the view
