CREATE MATERIALIZED VIEW sessions_with_lateness
WITH (allowed_lateness = '30 seconds') AS
SELECT window.start AS start, window.end AS end, shop, count(*) AS n FROM orders GROUP BY
  session_window(ts, '15 seconds'), shop;
