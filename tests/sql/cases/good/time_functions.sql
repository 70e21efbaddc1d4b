CREATE MATERIALIZED VIEW time_functions AS
SELECT id, year(ts) AS y, month(ts) AS m, hour(ts) AS h, minute(ts) AS mi, date_trunc('hour', ts)
  AS hour, ts + INTERVAL 90 MINUTES AS later, ts - INTERVAL '1' DAY AS before FROM orders;
