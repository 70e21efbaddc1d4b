CREATE MATERIALIZED VIEW hop_of_a_table AS
SELECT window_start, window_time, count(*) AS n, sum(qty) AS qty FROM HOP(TABLE orders,
  DESCRIPTOR(ts), '30 seconds', '1 minute') GROUP BY window_start, window_end, window_time;
