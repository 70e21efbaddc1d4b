CREATE MATERIALIZED VIEW v WITH (allowed_lateness = 'a while') AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, '1 minute')
-- error: 1:53: allowed_lateness: 'a while' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'
