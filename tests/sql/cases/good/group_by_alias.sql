CREATE MATERIALIZED VIEW group_by_alias AS
SELECT lower(shop) AS place, count(*) AS n FROM orders GROUP BY place;
