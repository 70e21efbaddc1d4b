CREATE MATERIALIZED VIEW aggregates_of_different_values AS
SELECT shop, sum(DISTINCT qty) AS s, avg(DISTINCT qty) AS a, count(DISTINCT tags) AS t,
  count(DISTINCT buyer.home) AS homes FROM orders GROUP BY shop;
