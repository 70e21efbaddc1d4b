CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM orders GROUP BY window(ts, '1 minute'), window(ts, '2 minutes')
-- error: 1:97: a view has one window; remove this one
