CREATE MATERIALIZED VIEW groups_over_a_self_union AS
SELECT kind, shop, count(*) AS n FROM (SELECT 'all' AS kind, shop FROM orders UNION ALL SELECT
  'paid' AS kind, shop FROM orders WHERE paid) GROUP BY kind, shop;
