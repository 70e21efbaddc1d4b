-- case: TUMBLE grouped by its window is window()
CREATE MATERIALIZED VIEW v AS
SELECT window_start, window_end, shop, count(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, shop
-- view: v, 0 us
-- from: orders
-- window: 60000000 us
-- key: key_0 = shop
-- call: call_0 = count()
-- output: window_start = _window_start
-- output: window_end = _window_end
-- output: shop = key_0
-- output: n = call_0

-- case: without the outer TABLE, and with an offset
CREATE MATERIALIZED VIEW v AS
SELECT window_start AS s, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL 1 HOUR, INTERVAL '30' MINUTES) GROUP BY window_start
-- view: v, 0 us
-- from: orders
-- window: 3600000000 us, from 1800000000 us
-- call: call_0 = count()
-- output: s = _window_start
-- output: n = call_0

-- case: HOP takes the slide first
CREATE MATERIALIZED VIEW v AS
SELECT window_start, window_end, window_time, count(*) AS n FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), '1 minute', '10 minutes')) AS w GROUP BY w.window_start, w.window_end, window_time
-- view: v, 0 us
-- from: orders
-- window: hopping, 600000000 us, every 60000000 us
-- call: call_0 = count()
-- output: window_start = _window_start
-- output: window_end = _window_end
-- output: window_time = _window_time
-- output: n = call_0

-- case: CUMULATE with an offset
CREATE MATERIALIZED VIEW v AS
SELECT window_end, count(*) AS n FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY, INTERVAL -10 MINUTES)) GROUP BY window_start, window_end
-- view: v, 0 us
-- from: orders
-- window: cumulative, 86400000000 us, every 3600000000 us, from -600000000 us
-- call: call_0 = count()
-- output: window_end = _window_end
-- output: n = call_0

-- case: SESSION of its keys
CREATE MATERIALIZED VIEW v AS
SELECT window_start, shop, count(*) AS n FROM TABLE(SESSION(TABLE orders PARTITION BY shop, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_start, window_end, shop
-- view: v, 0 us
-- from: orders
-- window: session, gap 300000000 us
-- key: key_0 = shop
-- call: call_0 = count()
-- output: window_start = _window_start
-- output: shop = key_0
-- output: n = call_0

-- case: SESSION of two keys
CREATE MATERIALIZED VIEW v AS
SELECT window_start, count(*) AS n FROM SESSION(TABLE orders PARTITION BY (shop, id), DESCRIPTOR(ts), INTERVAL '5' MINUTE) GROUP BY window_start, window_end, id, shop
-- view: v, 0 us
-- from: orders
-- window: session, gap 300000000 us
-- key: key_0 = id
-- key: key_1 = shop
-- call: call_0 = count()
-- output: window_start = _window_start
-- output: n = call_0

-- case: named arguments
CREATE MATERIALIZED VIEW v AS
SELECT window_start, count(*) AS n FROM TABLE(HOP(DATA => TABLE orders, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' MINUTE, SLIDE => INTERVAL '1' MINUTE)) GROUP BY window_start, window_end
-- view: v, 0 us
-- from: orders
-- window: hopping, 600000000 us, every 60000000 us
-- call: call_0 = count()
-- output: window_start = _window_start
-- output: n = call_0

-- case: conditions before and after the groups
CREATE MATERIALIZED VIEW v AS
SELECT window_start, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute') WHERE shop <> '' GROUP BY 1 HAVING window_start > TIMESTAMP '2026-01-01 00:00:00' AND count(*) > 1
-- view: v, 0 us
-- from: orders
-- where: shop <> ''
-- window: 60000000 us
-- call: call_0 = count()
-- having: _window_start > timestamp '2026-01-01 00:00:00' and call_0 > 1
-- output: window_start = _window_start
-- output: n = call_0

-- case: by name, by number and ALL
CREATE MATERIALIZED VIEW v AS
SELECT window_start AS w, shop, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute') GROUP BY ALL
-- view: v, 0 us
-- from: orders
-- window: 60000000 us
-- key: key_0 = shop
-- call: call_0 = count()
-- output: w = _window_start
-- output: shop = key_0
-- output: n = call_0

-- case: over the window's start
CREATE MATERIALIZED VIEW v AS
SELECT date_format(window_start, 'HH:mm') AS minute, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute') GROUP BY window_start
-- view: v, 0 us
-- from: orders
-- window: 60000000 us
-- call: call_0 = count()
-- output: minute = date_format(_window_start, 'HH:mm')
-- output: n = call_0

-- case: without groups a record has a row per window
CREATE MATERIALIZED VIEW v AS
SELECT id, window_start, window_end, window_time FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '2' MINUTE)) WHERE window_end > ts
-- view: v, 0 us
-- from: orders
-- windows: hopping, 120000000 us, every 60000000 us
-- where: _window_end > ts
-- output: id = id
-- output: window_start = _window_start
-- output: window_end = _window_end
-- output: window_time = _window_time

-- case: a star stands for the window, too
CREATE MATERIALIZED VIEW v AS
SELECT * EXCEPT (tags, prices, lines, buyer, body) FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute') w
-- view: v, 0 us
-- from: orders
-- windows: 60000000 us
-- output: id = id
-- output: shop = shop
-- output: ts = ts
-- output: window_start = _window_start
-- output: window_end = _window_end
-- output: window_time = _window_time

-- case: groups by other columns are over the rows of windows
CREATE MATERIALIZED VIEW v AS
SELECT shop, max(window_end) AS last, count(*) AS n FROM HOP(TABLE orders, DESCRIPTOR(ts), '1 minute', '2 minutes') GROUP BY shop
-- view: v, 0 us
-- from: orders
-- windows: hopping, 120000000 us, every 60000000 us
-- window: none
-- key: key_0 = shop
-- call: call_0 = max(_window_end)
-- call: call_1 = count()
-- output: shop = key_0
-- output: last = call_0
-- output: n = call_1

-- case: groups by a part of the start are over the rows of windows
CREATE MATERIALIZED VIEW v AS
SELECT hour(window_start) AS h, count(*) AS n FROM HOP(TABLE orders, DESCRIPTOR(ts), '1 minute', '2 minutes') GROUP BY hour(window_start)
-- view: v, 0 us
-- from: orders
-- windows: hopping, 120000000 us, every 60000000 us
-- window: none
-- key: key_0 = hour(_window_start)
-- call: call_0 = count()
-- output: h = key_0
-- output: n = call_0

-- case: with elements
CREATE MATERIALIZED VIEW v AS
SELECT window_start, tag, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute') LATERAL VIEW explode(tags) t AS tag GROUP BY window_start, window_end, tag
-- view: v, 0 us
-- from: orders
-- generate: tag = explode(tags)
-- window: 60000000 us
-- key: key_0 = tag
-- call: call_0 = count()
-- output: window_start = _window_start
-- output: tag = key_0
-- output: n = call_0

-- case: different windows of shops
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT shop, window_start FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute')
-- view: v, 0 us
-- from: orders
-- windows: 60000000 us
-- window: none
-- key: key_0 = shop
-- key: key_1 = _window_start
-- output: shop = key_0
-- output: window_start = key_1

-- case: GROUP BY TUMBLE and its start
CREATE MATERIALIZED VIEW v AS
SELECT TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, TUMBLE_END(ts, INTERVAL '1' MINUTE) AS e, TUMBLE_ROWTIME(ts, INTERVAL '1' MINUTE) AS r, count(*) AS n FROM orders GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)
-- view: v, 0 us
-- from: orders
-- window: 60000000 us
-- call: call_0 = count()
-- output: s = _window_start
-- output: e = _window_end
-- output: r = _window_time
-- output: n = call_0

-- case: GROUP BY HOP and SESSION by their event time
CREATE MATERIALIZED VIEW hops AS SELECT HOP_START(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR) AS s, count(*) AS n FROM orders GROUP BY HOP(ts, INTERVAL '1' MINUTE, INTERVAL '1' HOUR); CREATE MATERIALIZED VIEW sessions AS SELECT window.start AS s, shop, count(*) AS n FROM orders GROUP BY session(interval '20 seconds'), shop
-- view: hops, 0 us
-- from: orders
-- window: hopping, 3600000000 us, every 60000000 us
-- call: call_0 = count()
-- output: s = _window_start
-- output: n = call_0
-- view: sessions, 0 us
-- from: orders
-- window: session, gap 20000000 us
-- key: key_0 = shop
-- call: call_0 = count()
-- output: s = _window_start
-- output: shop = key_0
-- output: n = call_0

-- case: a window as a column
CREATE MATERIALIZED VIEW v AS
SELECT tumble(interval '1 hour') AS window, shop, count(*) AS n FROM orders GROUP BY 1, 2
-- view: v, 0 us
-- from: orders
-- window: 3600000000 us
-- key: key_0 = shop
-- call: call_0 = count()
-- output: window = named_struct('start', _window_start, 'end', _window_end)
-- output: shop = key_0
-- output: n = call_0

-- case: a window as a column by its name
CREATE MATERIALIZED VIEW v AS
SELECT tumble(interval '10 seconds') AS w, count(*) AS n FROM orders GROUP BY w
-- view: v, 0 us
-- from: orders
-- window: 10000000 us
-- call: call_0 = count()
-- output: w = named_struct('start', _window_start, 'end', _window_end)
-- output: n = call_0

-- case: intervals in window()
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, INTERVAL 1 HOUR, INTERVAL '15' MINUTE)
-- view: v, 0 us
-- from: orders
-- window: hopping, 3600000000 us, every 900000000 us
-- call: call_0 = count()
-- output: s = _window_start
-- output: n = call_0

-- case: a window column of a query within another
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, window.end AS e, n FROM (SELECT hop(interval '2 second', interval '10 seconds') AS window, count(*) AS n FROM orders GROUP BY 1)
-- view: v, 0 us
-- from: orders
-- window: hopping, 10000000 us, every 2000000 us
-- call: call_0 = count()
-- output: window = named_struct('start', _window_start, 'end', _window_end)
-- output: n = call_0
-- output: s = window.start
-- output: e = window.end
-- output: n = n

-- case: a session column, by its name, of a query within another
CREATE MATERIALIZED VIEW v AS
SELECT window.start, window.end, shop, rows FROM (SELECT SESSION(interval '20 seconds') AS window, shop, count(*) AS rows FROM orders GROUP BY window, shop)
-- view: v, 0 us
-- from: orders
-- window: session, gap 20000000 us
-- key: key_0 = shop
-- call: call_0 = count()
-- output: window = named_struct('start', _window_start, 'end', _window_end)
-- output: shop = key_0
-- output: rows = call_0
-- output: start = window.start
-- output: end = window.end
-- output: shop = shop
-- output: rows = rows

-- case: a window function over a query
CREATE MATERIALIZED VIEW v AS
SELECT window_start, big, count(*) AS n FROM TABLE(TUMBLE(TABLE (SELECT size(tags) > 1 AS big, ts FROM orders WHERE shop <> ''), DESCRIPTOR(ts), '1 minute')) GROUP BY window_start, window_end, big
-- view: v, 0 us
-- from: orders
-- where: shop <> ''
-- output: big = size(tags) > 1
-- output: ts = ts
-- window: 60000000 us
-- key: key_0 = big
-- call: call_0 = count()
-- output: window_start = _window_start
-- output: big = key_0
-- output: n = call_0

-- case: rows of windows in a query within another
CREATE MATERIALIZED VIEW v AS
SELECT w, count(*) AS n FROM (SELECT window_start AS w, shop FROM HOP(TABLE orders, DESCRIPTOR(ts), '1 minute', '2 minutes')) WHERE shop <> '' GROUP BY w
-- view: v, 0 us
-- from: orders
-- windows: hopping, 120000000 us, every 60000000 us
-- output: w = _window_start
-- output: shop = shop
-- where: shop <> ''
-- window: none
-- key: key_0 = w
-- call: call_0 = count()
-- output: w = key_0
-- output: n = call_0

-- case: a hopping window as a column
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n, hop(interval '2 second', interval '10 seconds') AS w FROM orders GROUP BY w
-- view: v, 0 us
-- from: orders
-- window: hopping, 10000000 us, every 2000000 us
-- call: call_0 = count()
-- output: n = call_0
-- output: w = named_struct('start', _window_start, 'end', _window_end)
