CREATE MATERIALIZED VIEW v AS SELECT id FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute', '1 second', '2 seconds')
-- error: 1:107: TUMBLE takes no more arguments; write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
