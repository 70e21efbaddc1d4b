-- oracle: spark
CREATE MATERIALIZED VIEW functions_over_maps AS
SELECT id, map_filter(prices, (k, v) -> v > 1.9) AS dear, transform_values(prices, (k, v) -> v *
  2) AS doubled, map_entries(prices) AS entries FROM orders;
