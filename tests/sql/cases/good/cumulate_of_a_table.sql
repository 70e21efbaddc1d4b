CREATE MATERIALIZED VIEW cumulate_of_a_table AS
SELECT window_start, window_end, user, count(*) AS n FROM CUMULATE(TABLE clicks, DESCRIPTOR(ts),
  INTERVAL '30' SECOND, INTERVAL '2' MINUTE, INTERVAL '15' SECOND) GROUP BY window_start,
  window_end, user;
