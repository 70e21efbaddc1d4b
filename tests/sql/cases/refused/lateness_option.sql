CREATE MATERIALIZED VIEW v WITH (lateness = '1 minute') AS
SELECT count(*) AS n FROM orders GROUP BY window(ts, '1 minute')
-- error: 1:34: CREATE MATERIALIZED VIEW has no option lateness; write allowed_lateness = '...'
