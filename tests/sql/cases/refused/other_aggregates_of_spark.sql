CREATE MATERIALIZED VIEW v AS
SELECT theta_sketch_agg(id) AS a, kll_sketch_agg_bigint(qty) AS b, tuple_sketch_agg_double(qty) AS c,
  vector_sum(array(weight)) AS d, bitmap_and_agg(body) AS e, approx_top_k_accumulate(shop) AS f
FROM orders
-- error: 2:8: the aggregate theta_sketch_agg() cannot be kept turn by turn; write approx_count_distinct(x)
-- error: 2:35: the aggregate kll_sketch_agg_bigint() cannot be kept turn by turn; write approx_percentile(x, p)
-- error: 2:68: the aggregate tuple_sketch_agg_double() cannot be kept turn by turn; the aggregates that can be are in docs/sql.md
-- error: 3:3: the aggregate vector_sum() cannot be kept turn by turn; the aggregates that can be are in docs/sql.md
-- error: 3:35: the aggregate bitmap_and_agg() cannot be kept turn by turn; the aggregates that can be are in docs/sql.md
-- error: 3:62: the aggregate approx_top_k_accumulate() cannot be kept turn by turn; write approx_top_k(x, k)
