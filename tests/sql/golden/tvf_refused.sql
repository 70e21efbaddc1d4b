-- case: a session of single records
CREATE MATERIALIZED VIEW v AS
SELECT id, window_start FROM SESSION(TABLE orders PARTITION BY id, DESCRIPTOR(ts), '5 minutes')
-- error: case.sql:2:30: a session is known only when it is complete, so a record has no session of its own; add GROUP BY window_start, window_end

-- case: sessions of other keys
CREATE MATERIALIZED VIEW v AS
SELECT window_start, count(*) AS n FROM SESSION(TABLE orders PARTITION BY shop, DESCRIPTOR(ts), '5 minutes') GROUP BY window_start, window_end
-- error: case.sql:2:41: sessions are those of the keys that GROUP BY names; write SESSION(TABLE s PARTITION BY k, ...) and GROUP BY window_start, window_end, k with the same columns

-- case: sessions of all and groups of some
CREATE MATERIALIZED VIEW v AS
SELECT window_start, shop, count(*) AS n FROM SESSION(TABLE orders, DESCRIPTOR(ts), '5 minutes') GROUP BY window_start, window_end, shop
-- error: case.sql:2:47: sessions are those of the keys that GROUP BY names; write SESSION(TABLE s PARTITION BY k, ...) and GROUP BY window_start, window_end, k with the same columns

-- case: cumulative windows by their start
CREATE MATERIALIZED VIEW v AS
SELECT window_start, count(*) AS n FROM CUMULATE(TABLE orders, DESCRIPTOR(ts), '1 hour', '1 day') GROUP BY window_start
-- error: case.sql:2:41: windows of CUMULATE that begin together end at different times; add window_end to GROUP BY

-- case: WHERE over the window of the groups
CREATE MATERIALIZED VIEW v AS
SELECT window_start, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute') WHERE window_start > TIMESTAMP '2026-01-01 00:00:00' GROUP BY window_start, window_end
-- error: case.sql:2:96: WHERE is evaluated before records are grouped by the window; write HAVING window_start > ...

-- case: another column than the event time
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(TABLE payments, DESCRIPTOR(seen), '1 minute')
-- error: case.sql:2:60: windows are over the event time of payments, which is ts; write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)

-- case: a relation without event time
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(TABLE notes, DESCRIPTOR(text), '1 minute')
-- error: case.sql:2:26: TUMBLE needs the event time of notes, which has none; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS

-- case: no relation
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TABLE(TUMBLE(DESCRIPTOR(ts), '1 minute'))
-- error: case.sql:2:39: TUMBLE takes its relation as TABLE s

-- case: no TABLE
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(orders, DESCRIPTOR(ts), '1 minute')
-- error: case.sql:2:33: TUMBLE takes its relation as TABLE s

-- case: no DESCRIPTOR
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(TABLE orders, ts, '1 minute')
-- error: case.sql:2:47: TUMBLE takes its time as DESCRIPTOR(ts); write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)

-- case: no size
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(TABLE orders, DESCRIPTOR(ts))
-- error: case.sql:2:26: TUMBLE: SIZE is missing; write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)

-- case: too many arguments
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM SESSION(TABLE orders, DESCRIPTOR(ts), '1 minute', '1 minute')
-- error: case.sql:2:76: SESSION takes no more arguments; write SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTE)

-- case: an argument of another name
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(DATA => TABLE orders, TIMECOL => DESCRIPTOR(ts), LENGTH => '1 minute')
-- error: case.sql:2:92: TUMBLE: LENGTH is not known; write TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)

-- case: a slide that is longer than the size
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM HOP(TABLE orders, DESCRIPTOR(ts), '10 minutes', '1 minute')
-- error: case.sql:2:26: HOP takes the slide first, then the size; swap them

-- case: a month
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MONTH)
-- error: case.sql:2:63: the window's size: '1 MONTH': a month has no fixed length; write days, such as '30 days'

-- case: PARTITION BY where it means nothing
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(TABLE orders PARTITION BY shop, DESCRIPTOR(ts), '1 minute')
-- error: case.sql:2:59: PARTITION BY belongs to SESSION alone; other windows are the same for all records, so remove it

-- case: an unknown stream
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(TABLE order, DESCRIPTOR(ts), '1 minute')
-- error: case.sql:2:39: there is no stream or view order (did you mean orders?); define it with CREATE STREAM or CREATE VIEW, or correct its name

-- case: an unfinished call
CREATE MATERIALIZED VIEW v AS
SELECT window_start FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute'
-- error: case.sql:2:32: ( is never closed; write )

-- case: the start of another window
CREATE MATERIALIZED VIEW v AS
SELECT TUMBLE_START(ts, INTERVAL '2' MINUTE) AS s, count(*) AS n FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)
-- error: case.sql:2:8: this is not the window of the groups; write GROUP BY tumble(...) as here

-- case: the start without groups
CREATE MATERIALIZED VIEW v AS
SELECT TUMBLE_START(ts, INTERVAL '2' MINUTE) AS s FROM orders
-- error: case.sql:2:8: tumble_start() is over groups; add GROUP BY tumble(...)

-- case: a window column that is not grouped by
CREATE MATERIALIZED VIEW v AS
SELECT tumble(interval '1 hour') AS w, count(*) AS n FROM orders GROUP BY shop
-- error: case.sql:2:8: tumble() belongs in GROUP BY; here write window.start or window.end

-- case: a window within an expression
CREATE MATERIALIZED VIEW v AS
SELECT upper(tumble(interval '1 hour')) AS w, count(*) AS n FROM orders GROUP BY 1
-- error: case.sql:2:14: tumble() belongs in GROUP BY; here write window.start or window.end
