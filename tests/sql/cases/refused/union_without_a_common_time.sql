CREATE MATERIALIZED VIEW v AS SELECT window.start AS s, count(*) AS n FROM (SELECT ts FROM orders UNION ALL SELECT shipped FROM orders) GROUP BY window(ts, '1 minute')
-- error: 1:146: window() needs the event time of the subquery, which has none; select the event time of every query of UNION ALL, as it is, in the same place
