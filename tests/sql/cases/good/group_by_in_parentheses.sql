CREATE MATERIALIZED VIEW group_by_in_parentheses AS
SELECT shop, paid, count(*) AS n FROM orders GROUP BY (shop, paid);
