CREATE MATERIALIZED VIEW group_by_ordinal AS
SELECT upper(shop) AS shop, paid, count(*) AS n FROM orders GROUP BY 1, 2;
