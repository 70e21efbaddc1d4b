CREATE MATERIALIZED VIEW v AS SELECT window_start, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(shipped), '1 minute') GROUP BY window_start
-- error: 1:103: windows are over the event time of orders, which is ts; write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
