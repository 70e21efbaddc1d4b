CREATE MATERIALIZED VIEW v AS
SELECT a, count(*) AS n FROM (SELECT shop AS a, qty AS b FROM orders) GROUP BY a b;
-- error: 2:82: this expression cannot be read near b; check its syntax
