CREATE MATERIALIZED VIEW a AS SELECT window_start, shop, count(*) AS n
FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY ROLLUP (window_start, shop);
CREATE MATERIALIZED VIEW b AS SELECT window_start, shop, count(*) AS n
FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
GROUP BY GROUPING SETS ((window_start, shop), (window_end));
CREATE MATERIALIZED VIEW c AS SELECT window.start AS start, shop, count(*) AS n
FROM orders GROUP BY window(ts, '1 minute'), CUBE (window.start, shop);
-- error: 2:81: window_start must be in all sets, because a row belongs to one window; write GROUP BY window_start, ROLLUP (...)
-- error: 5:26: window_start must be in all sets, because a row belongs to one window; write GROUP BY window_start, ROLLUP (...)
-- error: 7:52: window.start must be in all sets, because a row belongs to one window; write GROUP BY window.start, ROLLUP (...)
