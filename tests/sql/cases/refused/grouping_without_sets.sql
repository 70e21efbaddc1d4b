CREATE MATERIALIZED VIEW v AS SELECT shop, grouping(shop) AS g FROM orders GROUP BY shop
-- error: 1:44: grouping() tells which columns a grouping set leaves out, and there is none; write GROUP BY ROLLUP (a, b), CUBE (a, b) or GROUPING SETS ((a, b), (a), ())
