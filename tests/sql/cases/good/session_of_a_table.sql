CREATE MATERIALIZED VIEW session_of_a_table AS
SELECT window_start, window_end, user, max(ms) AS ms FROM SESSION(TABLE clicks PARTITION BY user,
  DESCRIPTOR(ts), INTERVAL '15' SECOND) GROUP BY window_start, window_end, user;
