CREATE MATERIALIZED VIEW a_common_table AS
WITH big AS (SELECT * FROM orders WHERE units > 4) SELECT shop, count(*) AS n, sum(units) AS units
  FROM big GROUP BY shop;
