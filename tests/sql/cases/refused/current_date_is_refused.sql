CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE day = current_date
-- error: 1:65: current_date depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
