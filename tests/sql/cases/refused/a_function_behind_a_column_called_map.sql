CREATE MATERIALIZED VIEW v AS SELECT CAST(x AS MAP<STRING, NUMERIC(9,1)>) AS x
FROM (SELECT qty AS map, prices AS x, ts FROM orders) t
WHERE t.map < 5 AND nope(t.map) > 3 AND now() > ts
-- error: 3:21: there is no function nope(); all of Spark's own can be called
-- error: 3:41: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
