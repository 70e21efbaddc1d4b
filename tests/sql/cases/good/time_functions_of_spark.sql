-- oracle: spark
CREATE MATERIALIZED VIEW time_functions_of_spark AS
SELECT id, date_format(ts, 'yyyy-MM-dd HH:mm') AS text, unix_timestamp(ts) AS seconds,
  timestampdiff(SECOND, ts, shipped) AS waits, date_add(day, 3) AS soon, datediff(day, DATE
  '2026-01-01') AS days, last_day(day) AS last, to_timestamp(concat('2026-03-0', 1 + pmod(qty,
  3)), 'yyyy-MM-dd') AS parsed, extract(DOW FROM ts) AS dow FROM orders;
