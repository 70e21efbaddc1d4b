CREATE MATERIALIZED VIEW collections AS
SELECT shop, collect_list(qty, 5) AS list, collect_set(paid) AS flags FROM orders GROUP BY shop;
