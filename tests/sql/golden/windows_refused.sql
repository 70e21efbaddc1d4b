-- case: the names of other systems
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY hop(ts, '10 minutes', '1 minute')
-- error: case.sql:2:64: HOP takes the slide first, then the size; swap them

-- case: a fifth argument
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '10 minutes', '1 minute', '1 second', '1 second')
-- error: case.sql:2:113: window() takes the time, size, slide, offset and no other arguments; write window(ts, '1 minute')

-- case: an argument that is missing
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '10 minutes', )
-- error: case.sql:2:64: window() takes the event time and a size; write window(ts, '1 minute')

-- case: a window without a size
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts)
-- error: case.sql:2:64: window() takes the event time and a size; write window(ts, '1 minute')

-- case: a cumulative window without a size
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY cumulate(ts, '1 hour')
-- error: case.sql:2:64: cumulate() takes the event time, a step and a size; write cumulate(ts, '1 hour', '1 day')

-- case: a slide without quotes
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute', 30)
-- error: case.sql:2:87: the window's slide is written in quotes; write window(ts, '1 minute')

-- case: a window of months
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 month')
-- error: case.sql:2:75: the window's size: '1 month': a month has no fixed length; write days, such as '30 days'

-- case: a slide that is no duration
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 hour', 'often')
-- error: case.sql:2:85: the window's slide: 'often' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'

-- case: a size of nothing
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '0 seconds')
-- error: case.sql:2:75: the window size must be positive; write window(ts, '1 minute')

-- case: a negative size
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '-1 minute')
-- error: case.sql:2:75: the window size must be positive; write window(ts, '1 minute')

-- case: a slide of nothing
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute', '0 seconds')
-- error: case.sql:2:87: the window slide must be positive; write window(ts, '1 minute')

-- case: a negative slide
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute', '-10 seconds')
-- error: case.sql:2:87: the window slide must be positive; write window(ts, '1 minute')

-- case: a step of nothing
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY cumulate(ts, '0 hours', '1 day')
-- error: case.sql:2:77: the window step must be positive; write cumulate(ts, '1 hour', '1 day')

-- case: a negative step
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY cumulate(ts, '-1 hours', '1 day')
-- error: case.sql:2:77: the window step must be positive; write cumulate(ts, '1 hour', '1 day')

-- case: a slide longer than the size
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute', '2 minutes')
-- error: case.sql:2:64: the window's slide is longer than its size, so that records between two windows would be in none; write a slide of at most the size

-- case: a step longer than the size
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY cumulate(ts, '1 day', '1 hour')
-- error: case.sql:2:64: the window's step is longer than its size; write the step first, then the size

-- case: a size that is no whole number of steps
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY cumulate(ts, '7 hours', '1 day')
-- error: case.sql:2:64: the window's size must be a whole number of steps; write, for example, cumulate(<event time>, '1 hour', '1 day')

-- case: an offset as long as the slide
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 hour', '20 minutes', '20 minutes')
-- error: case.sql:2:64: the window's offset must be shorter than the time from one window to the next; subtract whole steps from it

-- case: a negative offset as long as the size
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 hour', '1 hour', '-1 hour')
-- error: case.sql:2:64: the window's offset must be shorter than the time from one window to the next; subtract whole steps from it

-- case: too many windows for a record
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '30 days', '1 second')
-- error: case.sql:2:64: a record would be in 2,592,000 windows; at most 100,000 are possible, so write a longer slide

-- case: two windows
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute'), window(ts, '2 minutes')
-- error: case.sql:2:88: a view has one window; remove this one

-- case: two windows of different kinds
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute'), cumulate(ts, '1 hour', '1 day')
-- error: case.sql:2:88: a view has one window; remove this one

-- case: a window over another column
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(seen, '1 minute')
-- error: case.sql:2:71: windows are over the event time of payments, which is ts; write window(ts, '1 minute')

-- case: a derived time over another column too
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts + (seen - ts), '1 minute')
-- error: case.sql:2:77: windows are over the event time of payments, which is ts; write window(ts, '1 minute')

-- case: a derived time over no column
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(TIMESTAMP '2026-01-01 00:00:00', '1 minute')
-- error: case.sql:2:71: windows are over the event time of payments, and this is the same for every record; write window(ts, '1 minute')

-- case: a derived time that depends on when it is asked
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts + (now() - now()), '1 minute')
-- error: case.sql:2:77: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:2:85: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()

-- case: a derived time over an aggregate
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(max(ts), '1 minute')
-- error: case.sql:2:71: windows are over the time of single records, not over an aggregate; write window(ts, '1 minute')

-- case: a window over a stream without event time
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM notes GROUP BY window(text, '1 minute')
-- error: case.sql:2:42: window() needs the event time of notes, which has none; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS

-- case: a window within an expression
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM payments GROUP BY date_trunc('hour', window(ts, '1 minute').start)
-- error: case.sql:2:64: window() stands alone in GROUP BY; use window.start and window.end elsewhere

-- case: a window in the select list
CREATE MATERIALIZED VIEW v AS
SELECT window(ts, '1 minute').start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- error: case.sql:2:8: window() belongs in GROUP BY; here write window.start or window.end

-- case: a key over windows that overlap
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM payments GROUP BY window(ts, '2 minutes', '1 minute'), date_trunc('hour', window.start)
-- error: case.sql:2:82: records of windows that overlap cannot be grouped by an expression over window.start or window.end; move it from GROUP BY to SELECT

-- case: window_time of something else
CREATE MATERIALIZED VIEW v AS
SELECT window_time(ts) AS t, count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- error: case.sql:2:8: window_time() takes the view's window: window_time(window)

-- case: window_time without a name
CREATE MATERIALIZED VIEW v AS
SELECT window_time(window), count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- error: case.sql:2:8: this output has no name; add AS name after window_time(window)

-- case: window_time without a window
CREATE MATERIALIZED VIEW v AS
SELECT window_time(window) AS t, count(*) AS n FROM payments GROUP BY country
-- error: case.sql:2:8: there is no window here; add GROUP BY window(<event time>, '1 minute')

-- case: a part that windows do not have
CREATE MATERIALIZED VIEW v AS
SELECT window.time AS t, count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- error: case.sql:2:8: a view's window has a start and an end: window.start, window.end

-- case: a time zone that is not known
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berln') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day')
-- error: case.sql:1:46: time_zone 'Europe/Berln' is not known (did you mean Europe/Berlin?); write a name such as 'Europe/Berlin'

-- case: a time zone without a place
CREATE MATERIALIZED VIEW v WITH (time_zone = 'EST') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day')
-- error: case.sql:1:46: time_zone 'EST' is not known; write a name such as 'Europe/Berlin'

-- case: a time zone and hours
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '12 hours')
-- error: case.sql:1:46: time_zone 'Europe/Berlin' says when days begin, so the window needs whole days, such as window(<event time>, '1 day'); for shorter windows remove time_zone

-- case: a time zone and a slide of hours
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day', '6 hours')
-- error: case.sql:1:46: time_zone 'Europe/Berlin' says when days begin, so the window needs whole days, such as window(<event time>, '1 day'); for shorter windows remove time_zone

-- case: a time zone and an offset of hours
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day', '1 day', '6 hours')
-- error: case.sql:1:46: time_zone 'Europe/Berlin' says when days begin, so the window needs whole days, such as window(<event time>, '1 day'); for shorter windows remove time_zone

-- case: a time zone and a step of hours
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY cumulate(ts, '1 hour', '1 day')
-- error: case.sql:1:46: time_zone 'Europe/Berlin' says when days begin, so the window needs whole days, such as window(<event time>, '1 day'); for shorter windows remove time_zone

-- case: a time zone without a window
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
SELECT country, count(*) AS n FROM payments GROUP BY country
-- error: case.sql:1:46: time_zone of v: it says when the days of windows begin, and there is no window; remove it, or group by window(<event time>, '1 day')

-- case: a retention shorter than the lateness
CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '2 days', retention = '1 day') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day')
-- error: case.sql:1:75: retention is shorter than allowed_lateness: a row would be removed and come back with a part of its records; write a longer retention or a shorter allowed_lateness

-- case: a retention without a window
CREATE MATERIALIZED VIEW v WITH (retention = '1 day') AS
SELECT country, count(*) AS n FROM payments GROUP BY country
-- error: case.sql:1:46: retention of v: without a window its rows have no time to be counted from; remove it, or group by window(...)

-- case: a retention that is no duration
CREATE MATERIALIZED VIEW v WITH (retention = 'long') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day')
-- error: case.sql:1:46: retention: 'long' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'

-- case: a negative retention
CREATE MATERIALIZED VIEW v WITH (retention = '-1 day') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day')
-- error: case.sql:1:46: retention: '-1 day' is negative; write 0 or more

-- case: late without a window
CREATE MATERIALIZED VIEW v WITH (late = 'drop') AS
SELECT country, count(*) AS n FROM payments GROUP BY country
-- error: case.sql:1:41: late of v: without a window no record is ever late; remove it, or group by window(...)

-- case: a policy that is not known
CREATE MATERIALIZED VIEW v WITH (late = 'ignore') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day')
-- error: case.sql:1:41: late 'ignore' is not known; write 'topic' (late records go to the topic v.late), 'drop' (they are only counted) or 'fold' (no record is late while its row is kept)

-- case: late = 'fold' and a lateness
CREATE MATERIALIZED VIEW v WITH (late = 'fold', allowed_lateness = '1 hour') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day')
-- error: case.sql:1:68: late = 'fold' takes every record for as long as its row is kept, so allowed_lateness has no effect; remove one of the two

-- case: late without a window, although it is the default
CREATE MATERIALIZED VIEW v WITH (late = 'topic') AS
SELECT country, count(*) AS n FROM payments GROUP BY country
-- error: case.sql:1:41: late of v: without a window no record is ever late; remove it, or group by window(...)
