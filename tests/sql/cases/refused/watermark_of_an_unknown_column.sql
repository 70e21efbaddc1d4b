CREATE STREAM s (x INT, WATERMARK FOR ts AS ts - INTERVAL 1 SECOND)
-- error: 1:39: WATERMARK FOR ts: s has no such column
