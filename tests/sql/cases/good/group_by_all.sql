CREATE MATERIALIZED VIEW group_by_all AS
SELECT shop, paid, sum(qty) AS qty FROM orders GROUP BY ALL;
