-- case: numbers over aggregates
CREATE MATERIALIZED VIEW v AS
SELECT card, round(sum(price) / count(*), 2) AS a, CAST(avg(amount) AS DECIMAL(10,2)) AS b, sum(items) % 7 AS c,
  sum(items) DIV 2 AS d, floor(avg(price)) AS e, ceil(max(price)) AS f, pmod(count(*), 5) AS g,
  try_divide(sum(amount), sum(items)) AS h, greatest(max(items), 10) AS i, count(*) & 1 AS j, sqrt(sum(items)) AS k
FROM payments GROUP BY card
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = card
-- call: call_0 = sum(price)
-- call: call_1 = count()
-- call: call_2 = avg(amount)
-- call: call_3 = sum(items)
-- call: call_4 = avg(price)
-- call: call_5 = max(price)
-- call: call_6 = sum(amount)
-- call: call_7 = max(items)
-- output: card = key_0
-- output: a = round(call_0 / call_1, 2)
-- output: b = cast(call_2 as decimal(10, 2))
-- output: c = call_3 % 7
-- output: d = call_3 div 2
-- output: e = floor(call_4)
-- output: f = ceil(call_5)
-- output: g = pmod(call_1, 5)
-- output: h = try_divide(call_6, call_3)
-- output: i = greatest(call_7, 10)
-- output: j = call_1 & 1
-- output: k = sqrt(call_3)

-- case: texts over aggregates
CREATE MATERIALIZED VIEW v AS
SELECT concat('x', count(*)) AS a, max(id) || '-' || min(id) AS b, max(id) LIKE 'x%' AS c, lpad(max(id), 8, '0') AS d,
  substring(max(id), 1, 3) AS e, length(max(id)) AS f, trim(max(id)) AS g, md5(max(id)) AS h,
  contains(max(id), 'a') AS i, position('a' IN max(id)) AS j, max(id) NOT LIKE '%b' AS k FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = count()
-- call: call_1 = max(id)
-- call: call_2 = min(id)
-- output: a = concat('x', call_0)
-- output: b = call_1 || '-' || call_2
-- output: c = call_1 like 'x%'
-- output: d = lpad(call_1, 8, '0')
-- output: e = substring(call_1, 1, 3)
-- output: f = length(call_1)
-- output: g = trim(call_1)
-- output: h = md5(call_1)
-- output: i = contains(call_1, 'a')
-- output: j = position('a' in call_1)
-- output: k = call_1 not like '%b'

-- case: times over aggregates
CREATE MATERIALIZED VIEW v AS
SELECT max(ts) + INTERVAL 1 HOUR AS a, date_format(max(ts), 'yyyy-MM-dd HH:mm') AS b, year(max(ts)) AS c,
  date_trunc('hour', max(ts)) AS d, to_date(max(ts)) AS e, datediff(max(ts), min(ts)) AS f,
  unix_micros(max(ts)) - unix_micros(min(ts)) AS g, extract(HOUR FROM max(ts)) AS h FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = max(ts)
-- call: call_1 = min(ts)
-- output: a = call_0 + interval 1 hour
-- output: b = date_format(call_0, 'yyyy-MM-dd HH:mm')
-- output: c = year(call_0)
-- output: d = date_trunc('hour', call_0)
-- output: e = to_date(call_0)
-- output: f = datediff(call_0, call_1)
-- output: g = unix_micros(call_0) - unix_micros(call_1)
-- output: h = extract(hour from call_0)

-- case: structs and lists over aggregates
CREATE MATERIALIZED VIEW v AS
SELECT max_by(address, ts).city AS a, named_struct('n', count(*), 'last', max(ts)) AS b, array(min(items), max(items)) AS c,
  size(collect_list(card)) AS d, element_at(collect_list(card), 1) AS e, sort_array(collect_set(card)) AS f,
  array_join(collect_list(card), ',') AS g, slice(collect_list(card), 1, 2) AS h, approx_top_k(card)[0].item AS i,
  array_contains(collect_set(card), 'x') AS j FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = max_by(address, ts)
-- call: call_1 = count()
-- call: call_2 = max(ts)
-- call: call_3 = min(items)
-- call: call_4 = max(items)
-- call: call_5 = collect_list(card, 1000)
-- call: call_6 = collect_set(card, 1000)
-- call: call_7 = approx_top_k(card, 5)
-- output: a = call_0.city
-- output: b = named_struct('n', call_1, 'last', call_2)
-- output: c = array(call_3, call_4)
-- output: d = size(call_5)
-- output: e = element_at(call_5, 1)
-- output: f = sort_array(call_6)
-- output: g = array_join(call_5, ',')
-- output: h = slice(call_5, 1, 2)
-- output: i = call_7[0].item
-- output: j = array_contains(call_6, 'x')

-- case: choices over aggregates
CREATE MATERIALIZED VIEW v AS
SELECT nvl2(max(items), 'some', 'none') AS a, isnull(max(items)) AS b, nanvl(avg(price), 0D) AS c,
  CASE WHEN count(*) > 3 THEN concat(max(id), '!') ELSE upper(card) END AS d FROM payments GROUP BY card
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = card
-- call: call_0 = max(items)
-- call: call_1 = avg(price)
-- call: call_2 = count()
-- call: call_3 = max(id)
-- output: a = nvl2(call_0, 'some', 'none')
-- output: b = isnull(call_0)
-- output: c = nanvl(call_1, 0D)
-- output: d = case when call_2 > 3 then concat(call_3, '!') else upper(key_0) end

-- case: expressions over the edges of windows that overlap
CREATE MATERIALIZED VIEW v AS
SELECT date_format(window.start, 'HH:mm') AS a, window.end - INTERVAL 1 SECOND AS b, hour(window.start) + count(*) AS c
FROM payments GROUP BY window(ts, '2 minutes', '1 minute') HAVING minute(window.start) < 30
-- view: v, 0 us
-- from: payments
-- window: hopping, 120000000 us, every 60000000 us
-- call: call_0 = count()
-- having: minute(_window_start) < 30
-- output: a = date_format(_window_start, 'HH:mm')
-- output: b = _window_end - interval 1 second
-- output: c = hour(_window_start) + call_0

-- case: expressions over the edges of sessions and of cumulative windows
CREATE MATERIALIZED VIEW v AS
SELECT date_trunc('day', window.start) AS a, unix_timestamp(window.end) - unix_timestamp(window.start) AS b, count(*) AS n
FROM payments GROUP BY session_window(ts, '5 minutes');
CREATE MATERIALIZED VIEW w AS
SELECT date_trunc('hour', window.end) AS hour, count(*) AS n FROM payments GROUP BY cumulate(ts, '1 hour', '1 day')
-- view: v, 0 us
-- from: payments
-- window: session, gap 300000000 us
-- call: call_0 = count()
-- output: a = date_trunc('day', _window_start)
-- output: b = unix_timestamp(_window_end) - unix_timestamp(_window_start)
-- output: n = call_0
-- view: w, 0 us
-- from: payments
-- window: cumulative, 86400000000 us, every 3600000000 us
-- call: call_0 = count()
-- output: hour = date_trunc('hour', _window_end)
-- output: n = call_0

-- case: a field of a key beside an aggregate, and functions in HAVING
CREATE MATERIALIZED VIEW v AS
SELECT address.city AS city, count(*) > length(address.city) AS a FROM payments GROUP BY address.city
HAVING round(avg(price)) > 3
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = address.city
-- call: call_0 = count()
-- call: call_1 = avg(price)
-- having: round(call_1) > 3
-- output: city = key_0
-- output: a = call_0 > length(key_0)
