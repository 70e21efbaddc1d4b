CREATE MATERIALIZED VIEW v AS SELECT tags[0, 1] AS tag FROM orders
-- error: 1:46: one index or key is expected between [ and ], such as items[0]
