CREATE MATERIALIZED VIEW grouping_sets_by_hand AS
SELECT shop, paid, qty, count(*) AS n FROM orders GROUP BY GROUPING SETS ((shop, paid), (qty), ());
