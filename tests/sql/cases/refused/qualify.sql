CREATE MATERIALIZED VIEW v AS SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY ts) = 1
-- error: 1:53: QUALIFY is not built yet; write it when you read the view
