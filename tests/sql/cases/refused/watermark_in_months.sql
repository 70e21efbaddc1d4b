CREATE STREAM s (ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 1 MONTH)
-- error: 1:75: the watermark's delay: '1 MONTH': a month has no fixed length; write days, such as '30 days'
