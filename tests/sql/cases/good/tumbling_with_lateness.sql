CREATE MATERIALIZED VIEW tumbling_with_lateness
WITH (allowed_lateness = '1 minute') AS
SELECT window.start AS start, count(*) AS n, min(id) AS first FROM orders GROUP BY window(ts, '30
  seconds');
