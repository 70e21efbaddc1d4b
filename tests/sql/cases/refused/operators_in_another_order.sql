CREATE MATERIALIZED VIEW a AS
SELECT shop || qty + 1 AS x, count(*) AS n FROM orders GROUP BY shop, qty + 1;
CREATE MATERIALIZED VIEW b AS SELECT units | qty & units AS x FROM orders GROUP BY units, units | qty;
CREATE MATERIALIZED VIEW c AS SELECT qty & units << 1 AS x FROM orders GROUP BY qty & units;
CREATE MATERIALIZED VIEW d AS SELECT paid = qty < units AS x FROM orders GROUP BY paid, qty < units;
CREATE MATERIALIZED VIEW e AS
SELECT shop FROM orders GROUP BY shop, qty + 1 HAVING shop || qty + 1 > 'a';
-- error: 2:16: Spark groups the operators of shop || qty + 1 differently; write parentheses around qty + 1
-- error: 3:38: Spark groups the operators of units | qty & units differently; write parentheses around units | qty
-- error: 4:38: Spark groups the operators of qty & units << 1 differently; write parentheses around qty & units
-- error: 5:45: Spark groups the operators of paid = qty < units differently; write parentheses around qty < units
-- error: 7:63: Spark groups the operators of shop || qty + 1 differently; write parentheses around qty + 1
