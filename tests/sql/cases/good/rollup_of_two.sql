CREATE MATERIALIZED VIEW rollup_of_two AS
SELECT shop, paid, count(*) AS n, sum(units) AS units FROM orders GROUP BY ROLLUP (shop, paid);
