CREATE MATERIALIZED VIEW late_records_dropped
WITH (late = 'drop') AS
SELECT window.start AS start, count(*) AS n FROM orders GROUP BY window(ts, '10 seconds');
