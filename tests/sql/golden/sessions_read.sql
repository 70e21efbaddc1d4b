-- case: sessions of a card
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, window.end AS e, card, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes'), card
-- view: v, grouped over payments, 0 us
-- window: session, gap 300000000 us
-- key: k0 = card
-- call: a0 = count of None
-- output: s = window_start
-- output: e = window_end
-- output: card = k0
-- output: n = a0

-- case: all of a session's window, a lateness and a retention of both together
CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '10 minutes', retention = '15 minutes') AS
SELECT window_time(window) AS last, sum(amount) AS total FROM payments GROUP BY SESSION_WINDOW(ts, '5 minutes')
-- view: v, grouped over payments, 600000000 us, kept 900000000 us
-- window: session, gap 300000000 us
-- call: a0 = sum of amount
-- output: last = window_time
-- output: total = a0

-- case: sessions over a derived time
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts + INTERVAL 1 HOUR, '90 seconds')
-- view: v, grouped over payments, 0 us
-- window: session, gap 90000000 us, over ts + INTERVAL 1 HOUR
-- call: a0 = count of None
-- output: s = window_start
-- output: n = a0

-- case: window.start adds no key to sessions
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, country, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes'), window.start, country
-- view: v, grouped over payments, 0 us
-- window: session, gap 300000000 us
-- key: k0 = Country
-- call: a0 = count of None
-- output: s = window_start
-- output: Country = k0
-- output: n = a0

-- case: late records of sessions that are folded while their row is kept
CREATE MATERIALIZED VIEW v WITH (late = 'fold', retention = '5 minutes') AS
SELECT window.start AS s, count(*) AS n FROM payments GROUP BY session_window(ts, '5 minutes')
-- view: v, grouped over payments, 0 us, late fold, kept 300000000 us
-- window: session, gap 300000000 us
-- call: a0 = count of None
-- output: s = window_start
-- output: n = a0

-- case: a session that is asked for by its place and by its name
CREATE MATERIALIZED VIEW v AS
SELECT country AS c, window.start AS s, count(*) AS n FROM payments GROUP BY 1, session_window(ts, '5 minutes') HAVING n > 1
-- view: v, grouped over payments, 0 us
-- window: session, gap 300000000 us
-- key: k0 = Country
-- call: a0 = count of None
-- output: c = k0
-- output: s = window_start
-- output: n = a0
-- having: a0 > 1
