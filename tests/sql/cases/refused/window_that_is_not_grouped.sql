CREATE MATERIALIZED VIEW v AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY shop
-- error: 1:38: there is no window here; add GROUP BY window(<event time>, '1 minute')
