CREATE MATERIALIZED VIEW averages_and_spreads AS
SELECT shop, avg(qty) AS a, avg(price) AS p, stddev(qty) AS s, var_pop(weight) AS v,
  skewness(qty) AS w, kurtosis(weight) AS k FROM orders
  GROUP BY shop;
