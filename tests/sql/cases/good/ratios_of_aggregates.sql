CREATE MATERIALIZED VIEW ratios_of_aggregates AS
SELECT shop, sum(units) / count(*) AS mean, count(paid) * 100 / count(*) AS known FROM orders
  GROUP BY shop;
