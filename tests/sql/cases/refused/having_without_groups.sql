CREATE MATERIALIZED VIEW v AS SELECT id FROM orders HAVING qty > 1
-- error: 1:60: HAVING needs GROUP BY or an aggregate; write WHERE
