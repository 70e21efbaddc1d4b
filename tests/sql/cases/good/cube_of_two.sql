CREATE MATERIALIZED VIEW cube_of_two AS
SELECT shop, paid, grouping(shop) AS all_shops, grouping_id() AS sets, count(*) AS n FROM orders
  GROUP BY CUBE (shop, paid);
