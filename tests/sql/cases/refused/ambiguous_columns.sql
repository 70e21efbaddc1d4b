CREATE MATERIALIZED VIEW a AS SELECT shop, count(*) AS n
FROM (SELECT tags, shop FROM orders) LATERAL VIEW explode(tags) AS shop GROUP BY shop;
CREATE MATERIALIZED VIEW b AS SELECT x
FROM orders LATERAL VIEW explode(tags) AS x LATERAL VIEW explode(prices) AS x, y;
CREATE MATERIALIZED VIEW c AS SELECT * FROM (SELECT tags, shop FROM orders) LATERAL VIEW explode(tags) AS shop;
CREATE MATERIALIZED VIEW d AS SELECT shop FROM orders LATERAL VIEW explode(tags) AS shop;
CREATE MATERIALIZED VIEW e AS SELECT shop FROM orders LATERAL VIEW explode(tags) t AS shop;
-- error: 2:82: shop is the name of 2 columns; rename one with AS
-- error: 3:38: x is the name of 2 columns; rename one with AS
-- error: 5:38: * stands for 2 columns named shop; name the columns, with AS
-- error: 6:38: shop is the name of 2 columns; write orders.shop, or rename the other with AS
-- error: 7:38: shop is the name of 2 columns; write orders.shop or t.shop
