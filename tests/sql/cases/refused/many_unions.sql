CREATE MATERIALIZED VIEW v AS SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders UNION
SELECT id FROM orders
-- error: 1:53: UNION leaves out equal rows, which is not built yet; write UNION ALL, and GROUP BY over it (the same at 12 other places of this query)
