CREATE MATERIALIZED VIEW sketches AS
SELECT window.start AS start, approx_count_distinct(id) AS ids, approx_percentile(weight, 0.5) AS
  middle, approx_top_k(shop, 2) AS top FROM orders GROUP BY window(ts, '5 minutes');
