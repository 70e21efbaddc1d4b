CREATE MATERIALIZED VIEW v AS SELECT id FROM orders UNION SELECT id FROM clicks
-- error: 1:53: UNION leaves out equal rows, which is not built yet; write UNION ALL, and GROUP BY over it
