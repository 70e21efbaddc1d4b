CREATE MATERIALIZED VIEW a AS SELECT shop, count(*) AS n
FROM orders WHERE window.start > ts GROUP BY window(ts, '1 minute'), shop;
CREATE MATERIALIZED VIEW b AS SELECT sum(unix_timestamp(ts) - unix_timestamp(window.start)) AS n
FROM orders GROUP BY window(ts, '1 minute');
CREATE MATERIALIZED VIEW c AS SELECT window_start, window_end, count(*) AS n
FROM orders GROUP BY window(ts, '1 minute');
CREATE MATERIALIZED VIEW d AS SELECT window_start, e, count(*) AS n
FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
LATERAL VIEW explode(tags) AS t LATERAL VIEW explode(array(window_start)) AS e LATERAL VIEW explode(tags) AS u
GROUP BY window_start, e;
-- error: 2:19: WHERE is evaluated before records are grouped by the window; write HAVING window.start > ...
-- error: 3:38: an aggregate cannot read the window's edges; use window.start and window.end outside of sum()
-- error: 5:38: window_start is written window.start here
-- error: 5:52: window_end is written window.end here
-- error: 9:33: LATERAL VIEW is evaluated before records are grouped by the window; use window_start in SELECT
