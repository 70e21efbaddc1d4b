CREATE MATERIALIZED VIEW correlations AS
SELECT shop, corr(qty, weight) AS c, covar_pop(qty, weight) AS p, covar_samp(qty, weight) AS s,
  regr_slope(qty, weight) AS slope, regr_count(qty, weight) AS n FROM orders GROUP BY shop;
