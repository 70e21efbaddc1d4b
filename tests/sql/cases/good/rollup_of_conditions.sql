CREATE MATERIALIZED VIEW rollup_of_conditions AS
SELECT qty > 1 AS several, shop LIKE 'e%' AS eastern, count(*) AS n, grouping(qty > 1) AS g
FROM orders GROUP BY ROLLUP (qty > 1, shop LIKE 'e%');
