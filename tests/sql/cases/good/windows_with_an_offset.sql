CREATE MATERIALIZED VIEW windows_with_an_offset AS
SELECT window.start AS start, count(*) AS n FROM orders GROUP BY window(ts, '1 minute', '1
  minute', '10 seconds');
