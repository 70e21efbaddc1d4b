CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM orders GROUP BY window(ts, '1 minute'
-- error: 1:79: ( is never closed; write )
