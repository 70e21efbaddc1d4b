-- case: a slide as long as the size is a tumbling window
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute', '60 seconds')
-- view: v, 0 us
-- from: payments
-- window: 60000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: hopping windows
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '24 hours', '1 minute')
-- view: v, 0 us
-- from: payments
-- window: hopping, 86400000000 us, every 60000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: a size need not be a multiple of the slide
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '10 seconds', '3 seconds')
-- view: v, 0 us
-- from: payments
-- window: hopping, 10000000 us, every 3000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: an offset, after the slide as in Spark
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 hour', '1 hour', '15 minutes')
-- view: v, 0 us
-- from: payments
-- window: 3600000000 us, from 900000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: an offset may be negative
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 hour', '20 minutes', '-5 minutes')
-- view: v, 0 us
-- from: payments
-- window: hopping, 3600000000 us, every 1200000000 us, from -300000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: an offset of several parts
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day', '1 day', '1 hour -30 minutes')
-- view: v, 0 us
-- from: payments
-- window: 86400000000 us, from 1800000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: cumulative windows
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, window.end AS e, country, count(*) AS n FROM payments GROUP BY cumulate(ts, '1 hour', '1 day'), country
-- view: v, 0 us
-- from: payments
-- window: cumulative, 86400000000 us, every 3600000000 us
-- key: key_0 = Country
-- call: call_0 = count()
-- output: w = _window_start
-- output: e = _window_end
-- output: Country = key_0
-- output: n = call_0

-- case: a cumulative window of one step
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY cumulate(ts, '1 day', '1 day')
-- view: v, 0 us
-- from: payments
-- window: cumulative, 86400000000 us, every 86400000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: a derived time over the event time alone
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments p GROUP BY window(date_trunc('hour', p.TS) + INTERVAL 1 HOUR, '1 day')
-- view: v, 0 us
-- from: payments
-- window: 86400000000 us, over date_trunc('hour', ts) + interval 1 hour
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: the event time in parentheses is the event time
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window((ts), '1 day')
-- view: v, 0 us
-- from: payments
-- window: 86400000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: window_time is a part of the window, alone, within expressions and beside aggregates
CREATE MATERIALIZED VIEW v AS
SELECT window_time(window) AS t, date_format(WINDOW_TIME( window ), 'HH') AS hour, count(*) AS n, window_time(window) > max(seen) AS q FROM payments GROUP BY window(ts, '1 minute')
-- view: v, 0 us
-- from: payments
-- window: 60000000 us
-- call: call_0 = count()
-- call: call_1 = max(seen)
-- output: t = _window_time
-- output: hour = date_format(_window_time, 'HH')
-- output: n = call_0
-- output: q = _window_time > call_1

-- case: window_time of windows that overlap
CREATE MATERIALIZED VIEW v AS
SELECT window_time(window) AS t, count(*) AS n FROM payments GROUP BY window(ts, '2 minutes', '1 minute')
-- view: v, 0 us
-- from: payments
-- window: hopping, 120000000 us, every 60000000 us
-- call: call_0 = count()
-- output: t = _window_time
-- output: n = call_0

-- case: days of a time zone
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 day')
-- view: v, 0 us
-- from: payments
-- window: 86400000000 us, days of Europe/Berlin
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: a week of days of a time zone, every day
CREATE MATERIALIZED VIEW v WITH (time_zone = 'America/New_York') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '7 days', '1 day')
-- view: v, 0 us
-- from: payments
-- window: hopping, 604800000000 us, every 86400000000 us, days of America/New_York
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: days of a time zone, weeks from Monday on
CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Berlin') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 week', '1 week', '4 days')
-- view: v, 0 us
-- from: payments
-- window: 604800000000 us, from 345600000000 us, days of Europe/Berlin
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: late records that are counted and no more
CREATE MATERIALIZED VIEW v WITH (late = 'drop', allowed_lateness = '1 minute') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- view: v, 60000000 us, late drop
-- from: payments
-- window: 60000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: late records that are folded while their row is kept
CREATE MATERIALIZED VIEW v WITH (late = 'fold', retention = '30 days') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- view: v, 0 us, late fold, kept 2592000000000 us
-- from: payments
-- window: 60000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: late records that are always folded
CREATE MATERIALIZED VIEW v WITH (late = 'fold') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- view: v, 0 us, late fold
-- from: payments
-- window: 60000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: a retention as long as the lateness
CREATE MATERIALIZED VIEW v WITH (late = 'topic', allowed_lateness = '1 day', retention = '1 day') AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- view: v, 86400000000 us, kept 86400000000 us
-- from: payments
-- window: 60000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: window.start adds no key where windows overlap
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, country, count(*) AS n FROM payments GROUP BY window(ts, '2 minutes', '1 minute'), window.start, country
-- view: v, 0 us
-- from: payments
-- window: hopping, 120000000 us, every 60000000 us
-- key: key_0 = Country
-- call: call_0 = count()
-- output: w = _window_start
-- output: Country = key_0
-- output: n = call_0
