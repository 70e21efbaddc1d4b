CREATE MATERIALIZED VIEW v AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, '1 minute', '2 minutes')
-- error: 1:92: the window's slide is longer than its size, so that records between two windows would be in none; write a slide of at most the size
