CREATE MATERIALIZED VIEW select_over_groups AS
SELECT shop, n * 2 AS twice FROM (SELECT shop, count(*) AS n FROM orders GROUP BY shop) WHERE n > 3;
