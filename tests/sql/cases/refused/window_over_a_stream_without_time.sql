CREATE MATERIALIZED VIEW v AS SELECT window_start, count(*) AS n FROM TUMBLE(TABLE notes, DESCRIPTOR(text), '1 minute') GROUP BY window_start
-- error: 1:71: TUMBLE needs the event time of notes, which has none; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS
