CREATE MATERIALIZED VIEW v AS SELECT id FROM orders HAVING qty > 1
-- error: 1:60: HAVING without GROUP BY filters nothing; write WHERE
