CREATE MATERIALIZED VIEW late_records_folded
WITH (late = 'fold') AS
SELECT window.start AS start, count(*) AS n FROM clicks GROUP BY window(ts, '20 seconds');
