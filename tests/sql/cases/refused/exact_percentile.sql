CREATE MATERIALIZED VIEW v AS SELECT percentile(qty, 0.5) AS p FROM orders
-- error: 1:38: the aggregate percentile() cannot be kept turn by turn; write approx_percentile(x, p)
