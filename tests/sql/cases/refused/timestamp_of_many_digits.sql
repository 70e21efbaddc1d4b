CREATE STREAM s (at TIMESTAMP(12) NOT NULL, WATERMARK FOR at AS at - INTERVAL 5 SECONDS)
-- error: 1:21: column at: TIMESTAMP(12) is not a type; write 0 to 9, or TIMESTAMP
