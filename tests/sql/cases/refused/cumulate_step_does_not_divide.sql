CREATE MATERIALIZED VIEW v AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY cumulate(ts, '40 seconds', '1 minute')
-- error: 1:92: the window's size must be a whole number of steps; write, for example, cumulate(<event time>, '1 hour', '1 day')
