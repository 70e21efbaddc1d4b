CREATE MATERIALIZED VIEW v AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, '0 seconds')
-- error: 1:103: the window size must be positive; write window(ts, '1 minute')
