CREATE MATERIALIZED VIEW v AS SELECT window.start AS s, count(*) AS n FROM notes GROUP BY window(ts, '1 minute')
-- error: 1:91: window() needs the event time of notes, which has none; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS
