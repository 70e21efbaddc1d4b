-- case: sessions of a card
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, window.end AS e, card, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes'), card
-- view: v, 0 us
-- from: payments
-- window: session, gap 300000000 us
-- key: key_0 = card
-- call: call_0 = count()
-- output: s = _window_start
-- output: e = _window_end
-- output: card = key_0
-- output: n = call_0

-- case: all of a session's window, a lateness and a retention of both together
CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '10 minutes', retention = '15 minutes') AS
SELECT window_time(window) AS last, sum(amount) AS total FROM payments GROUP BY SESSION_WINDOW(ts, '5 minutes')
-- view: v, 600000000 us, kept 900000000 us
-- from: payments
-- window: session, gap 300000000 us
-- call: call_0 = sum(amount)
-- output: last = _window_time
-- output: total = call_0

-- case: sessions over a derived time
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts + INTERVAL 1 HOUR, '90 seconds')
-- view: v, 0 us
-- from: payments
-- window: session, gap 90000000 us, over ts + interval 1 hour
-- call: call_0 = count()
-- output: s = _window_start
-- output: n = call_0

-- case: window.start adds no key to sessions
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, country, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes'), window.start, country
-- view: v, 0 us
-- from: payments
-- window: session, gap 300000000 us
-- key: key_0 = Country
-- call: call_0 = count()
-- output: s = _window_start
-- output: Country = key_0
-- output: n = call_0

-- case: late records of sessions that are folded while their row is kept
CREATE MATERIALIZED VIEW v WITH (late = 'fold', retention = '5 minutes') AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes')
-- view: v, 0 us, late fold, kept 300000000 us
-- from: payments
-- window: session, gap 300000000 us
-- call: call_0 = count()
-- output: s = _window_start
-- output: n = call_0

-- case: a session that is asked for by its place and by its name
CREATE MATERIALIZED VIEW v AS
SELECT country AS c, window.start AS s, count(*) AS n FROM payments GROUP BY 1, session_window(ts, '5 minutes') HAVING n > 1
-- view: v, 0 us
-- from: payments
-- window: session, gap 300000000 us
-- key: key_0 = Country
-- call: call_0 = count()
-- having: call_0 > 1
-- output: c = key_0
-- output: s = _window_start
-- output: n = call_0
