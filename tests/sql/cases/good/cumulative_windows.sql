CREATE MATERIALIZED VIEW cumulative_windows AS
SELECT window.start AS start, window.end AS end, count(*) AS n, sum(qty) AS qty FROM orders GROUP
  BY cumulate(ts, '30 seconds', '2 minutes');
