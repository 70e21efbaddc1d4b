CREATE MATERIALIZED VIEW v AS SELECT "shop" AS x, count(*) AS "my shop", min(qty) AS "least" FROM orders;
CREATE MATERIALIZED VIEW w AS SELECT shop, count(*) AS n FROM orders GROUP BY "Shop";
-- error: 1:63: an output's name is written in backquotes: AS `my shop`
-- error: 1:86: an output's name is written without quotes: AS least
-- error: 2:79: "Shop" is a text, not the column; write shop or `shop`
