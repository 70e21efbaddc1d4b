CREATE MATERIALIZED VIEW sessions_of_users AS
SELECT window.start AS start, window.end AS end, user, count(*) AS n, sum(ms) AS ms FROM clicks
  GROUP BY session_window(ts, '20 seconds'), user;
