CREATE MATERIALIZED VIEW v AS SELECT window_start, count(*) AS n
FROM HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1' HOUR)
GROUP BY window(ts, '1 hour')
-- error: 3:10: a view has one window; remove this one
