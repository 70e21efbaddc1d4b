CREATE MATERIALIZED VIEW v AS SELECT id, now() AS at FROM orders
-- error: 1:42: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
