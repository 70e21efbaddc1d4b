CREATE MATERIALIZED VIEW v AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, '1 month')
-- error: 1:103: the window's size: '1 month': a month has no fixed length; write days, such as '30 days'
