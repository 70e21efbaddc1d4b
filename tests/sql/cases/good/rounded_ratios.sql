CREATE MATERIALIZED VIEW rounded_ratios AS
SELECT shop, round(sum(weight) / count(*), 2) AS mean, concat(shop, ': ', CAST(count(*) AS
  STRING)) AS text FROM orders GROUP BY shop;
