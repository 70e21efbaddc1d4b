-- case: a session without a gap
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts)
-- error: case.sql:2:64: session_window() takes the event time and a gap; write session_window(ts, '5 minutes')

-- case: a session of nothing
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window()
-- error: case.sql:2:64: session_window() takes the event time and a gap; write session_window(ts, '5 minutes')

-- case: a gap of nothing
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '0 seconds')
-- error: case.sql:2:83: the window gap must be positive; write session_window(ts, '5 minutes')

-- case: a negative gap
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '-5 minutes')
-- error: case.sql:2:83: the window gap must be positive; write session_window(ts, '5 minutes')

-- case: a gap that is no duration
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, 'soon')
-- error: case.sql:2:83: the window's gap: 'soon' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'

-- case: a gap in months
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '1 month')
-- error: case.sql:2:83: the window's gap: '1 month': a month has no fixed length; write days, such as '30 days'

-- case: a gap that differs from record to record
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, CASE WHEN country = 'DE' THEN '5 minutes' ELSE '1 hour' END)
-- error: case.sql:2:83: a session's gap is one for all of its records, in quotes; write session_window(ts, '5 minutes'). Where gaps differ, make a view for each, with its records in WHERE

-- case: a gap that is a column
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, country)
-- error: case.sql:2:83: a session's gap is one for all of its records, in quotes; write session_window(ts, '5 minutes'). Where gaps differ, make a view for each, with its records in WHERE

-- case: a session with a slide
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes', '1 minute')
-- error: case.sql:2:96: session_window() takes the time, gap and no other arguments; write session_window(ts, '5 minutes')

-- case: a window and a session
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY window(ts, '1 day'), session_window(ts, '5 minutes')
-- error: case.sql:2:85: a view has one window; remove this one

-- case: a session outside of GROUP BY
CREATE MATERIALIZED VIEW v AS
SELECT session_window(ts, '5 minutes') AS s, count(*) AS n FROM payments GROUP BY country
-- error: case.sql:2:8: session_window() belongs in GROUP BY; here write window.start or window.end

-- case: a session within an expression
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY coalesce(session_window(ts, '5 minutes'))
-- error: case.sql:2:73: session_window() stands alone in GROUP BY; use window.start and window.end elsewhere

-- case: a session over another column
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(amount, '5 minutes')
-- error: case.sql:2:79: windows are over the event time of payments, which is ts; write session_window(ts, '5 minutes')

-- case: a session by Spark's name for its parts
CREATE MATERIALIZED VIEW v AS
SELECT session_window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes')
-- view: v, 0 us
-- from: payments
-- window: session, gap 300000000 us
-- call: call_0 = count()
-- output: s = _window_start
-- output: n = call_0

-- case: a key over a session's end in GROUP BY
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes'), hour(window.end)
-- error: case.sql:2:78: records of sessions cannot be grouped by an expression over window.start or window.end; move it from GROUP BY to SELECT

-- case: a session with a time zone
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '1 day')
-- error: case.sql:1:46: time_zone has no effect on a session, which begins with its first record; remove time_zone

-- case: a retention shorter than the lateness and the gap
CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '10 minutes', retention = '14 minutes') AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes')
-- error: case.sql:1:79: retention is shorter than allowed_lateness and the session's gap together: a session would be removed while a record in time can still extend it; write a retention of at least their sum

-- case: a retention shorter than the gap alone
CREATE MATERIALIZED VIEW v WITH (retention = '4 minutes') AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes')
-- error: case.sql:1:46: retention is shorter than allowed_lateness and the session's gap together: a session would be removed while a record in time can still extend it; write a retention of at least their sum

-- case: late records that are folded, and a retention shorter than the gap
CREATE MATERIALIZED VIEW v WITH (late = 'fold', retention = '4 minutes') AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes')
-- error: case.sql:1:61: retention is shorter than the session's gap: a session would be removed while a record in time can still extend it; write a retention of at least the gap
