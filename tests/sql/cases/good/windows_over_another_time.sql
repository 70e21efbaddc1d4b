CREATE MATERIALIZED VIEW windows_over_another_time
WITH (late = 'fold') AS
SELECT window.start AS start, count(*) AS n FROM orders GROUP BY window(ts + INTERVAL 1 HOUR, '5
  minutes');
