CREATE MATERIALIZED VIEW v AS SELECT id, window_start FROM SESSION(TABLE orders PARTITION BY shop, DESCRIPTOR(ts), '1 minute')
-- error: 1:60: a session is known only when it is complete, so a record has no session of its own; add GROUP BY window_start, window_end
