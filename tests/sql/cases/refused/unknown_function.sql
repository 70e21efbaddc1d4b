CREATE MATERIALIZED VIEW v AS SELECT uper(shop) AS shop FROM orders
-- error: 1:38: there is no function uper() (did you mean upper?); all of Spark's own can be called
