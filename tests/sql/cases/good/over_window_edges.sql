CREATE MATERIALIZED VIEW over_window_edges AS
SELECT date_format(window.start, 'HH:mm') AS minute, count(*) AS n FROM orders GROUP BY window(ts,
  '1 minute');
