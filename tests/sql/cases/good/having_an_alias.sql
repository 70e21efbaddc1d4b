CREATE MATERIALIZED VIEW having_an_alias AS
SELECT shop, count(*) AS n FROM orders GROUP BY shop HAVING n > 4;
