CREATE MATERIALIZED VIEW tumble_of_a_table AS
SELECT window_start, window_end, shop, count(*) AS n FROM TABLE(TUMBLE(TABLE orders,
  DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, shop;
