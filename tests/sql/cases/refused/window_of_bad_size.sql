CREATE MATERIALIZED VIEW v AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, 'soon')
-- error: 1:103: the window's size: 'soon' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'
