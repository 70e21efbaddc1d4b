CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE window(ts, '1 minute').start > ts
-- error: 1:59: window() belongs in GROUP BY; here write window.start or window.end
