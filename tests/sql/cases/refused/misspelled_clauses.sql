CREATE MATERIALIZED VIEW a AS SELECT shop, count(*) AS n FROM orders GROUP shop;
CREATE MATERIALIZED VIEW b AS SELECT shop, count(*) AS n FROM orders GROUPBY shop;
CREATE MATERIALIZED VIEW c AS SELECT shop, count(*) AS n FROM orders WHER qty > 1 GROUP BY shop;
CREATE MATERIALIZED VIEW d AS SELECT shop, count(*) AS n FROM orders o WHER qty > 1 GROUP BY shop;
CREATE MATERIALIZED VIEW e AS SELECT shop, count(*) AS n FROM orders EMIT CHANGES GROUP BY shop;
CREATE MATERIALIZED VIEW f AS SELECT shop, count(*) AS n FROM orders GROUP BY;
CREATE MATERIALIZED VIEW g AS SELECT shop, count(*) AS n FROM orders GROUP BY HAVING n > 1;
-- error: 1:70: GROUP begins no clause (did you mean GROUP BY?)
-- error: 2:70: GROUPBY begins no clause (did you mean GROUP BY?)
-- error: 3:70: WHER begins no clause (did you mean WHERE?)
-- error: 4:72: WHER begins no clause (did you mean WHERE?)
-- error: 5:70: EMIT CHANGES is what a view does anyway; remove it
-- error: 6:70: an expression is missing after GROUP BY; write one
-- error: 7:70: an expression is missing after GROUP BY; write one
