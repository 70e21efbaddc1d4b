CREATE MATERIALIZED VIEW v WITH (allowed_latenes = '1 minute') AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, '1 minute')
-- error: 1:34: CREATE MATERIALIZED VIEW has no option allowed_latenes (did you mean allowed_lateness?); its options are allowed_lateness, late, retention, time_zone, emit, changes
