CREATE MATERIALIZED VIEW v WITH (emit = 'every 0 seconds') AS SELECT id FROM orders
-- error: 1:41: `emit = 'every 0 seconds'` is not allowed; use `emit = 'changes'`
