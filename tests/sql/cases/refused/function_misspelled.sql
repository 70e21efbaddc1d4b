CREATE MATERIALIZED VIEW v AS SELECT cont(*) AS n, mx(qty) AS m, aproximate_percentile(qty, 1) AS p FROM orders
-- error: 1:38: there is no function cont() (did you mean count?); all of Spark's own can be called
-- error: 1:52: there is no function mx() (did you mean max?); all of Spark's own can be called
-- error: 1:66: there is no function aproximate_percentile() (did you mean approx_percentile?); all of Spark's own can be called
