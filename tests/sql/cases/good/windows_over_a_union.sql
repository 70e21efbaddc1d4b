CREATE MATERIALIZED VIEW windows_over_a_union AS
SELECT window.start AS start, shop, count(*) AS n, sum(items) AS items FROM (SELECT 'north' AS
  shop, items, at FROM north UNION ALL SELECT 'south' AS shop, items, sold_at FROM south) AS sales
  GROUP BY window(at, '2 minutes'), shop;
