CREATE MATERIALIZED VIEW group_by_expression AS
SELECT qty % 3 AS rest, paid, count(*) AS n FROM orders GROUP BY qty % 3, paid;
