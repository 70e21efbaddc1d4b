-- case: the view of the design
CREATE MATERIALIZED VIEW spend_per_minute WITH (allowed_lateness = '10 minutes') AS
SELECT window.start AS minute, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '1 minute'), country;
-- view: spend_per_minute, 600000000 us
-- from: payments
-- window: 60000000 us
-- key: key_0 = Country
-- call: call_0 = count()
-- call: call_1 = sum(amount)
-- output: minute = _window_start
-- output: Country = key_0
-- output: n = call_0
-- output: total = call_1

-- case: a star is written out, and aliases vanish
CREATE MATERIALIZED VIEW v AS
SELECT p.*, upper(P.`country`) AS c FROM payments AS p WHERE p.amount > 1.5 AND p.address.city = 'x'
-- view: v, 0 us
-- from: payments
-- where: amount > 1.5 and address.city = 'x'
-- output: id = id
-- output: card = card
-- output: amount = amount
-- output: Country = Country
-- output: items = items
-- output: price = price
-- output: tags = tags
-- output: address = address
-- output: date = date
-- output: ts = ts
-- output: seen = seen
-- output: c = upper(Country)

-- case: a star without an alias
CREATE MATERIALIZED VIEW v AS SELECT * FROM notes
-- view: v, 0 us
-- from: notes
-- output: text = text

-- case: a view may be made of one expression
CREATE MATERIALIZED VIEW v AS SELECT text || '!' AS loud FROM notes n WHERE n.text IS NOT NULL
-- view: v, 0 us
-- from: notes
-- where: text is not null
-- output: loud = text || '!'

-- case: literals reach Spark as they were written, a doubled quote as an escaped one
CREATE MATERIALIZED VIEW v AS
SELECT 'it''s' AS a, 'it\'s' AS b, "double ""quotes""" AS c, 'line\nbreak' AS d, r'\d+' AS e, X'1F' AS f,
  1L AS g, 1.5BD AS h, 1e3 AS i, 'é日本😀' AS j, '' AS k, 2S AS l, '\\d' AS m, '''' AS n, 'a' 'b' AS o,
  'a\'''b' AS p FROM notes
-- view: v, 0 us
-- from: notes
-- output: a = 'it\'s'
-- output: b = 'it\'s'
-- output: c = "double \"quotes\""
-- output: d = 'line\nbreak'
-- output: e = r'\d+'
-- output: f = x'1f'
-- output: g = 1L
-- output: h = 1.5BD
-- output: i = 1e3
-- output: j = 'é日本😀'
-- output: k = ''
-- output: l = 2S
-- output: m = '\\d'
-- output: n = '\''
-- output: o = 'a' 'b'
-- output: p = 'a\'\'b'

-- case: operators and functions reach Spark as they were written
CREATE MATERIALIZED VIEW v AS
SELECT items div 2 AS a, items % 2 AS b, amount <=> 1 AS c, CAST(id AS INT) AS d, TRY_CAST(id AS INT) AS e,
  items :: STRING AS f, date_trunc('hour', ts) AS g, ts + INTERVAL 1 HOUR AS h, ts - INTERVAL '1-2' YEAR TO MONTH AS i,
  transform(tags, x -> upper(x) || id) AS j, aggregate(tags, 0, (total, x) -> total + length(x)) AS k,
  tags[0] AS l, address.`zip code` AS m, id RLIKE '^a\\d+$' AS n, id LIKE 'a!%' ESCAPE '!' AS o,
  id NOT IN ('a', 'b') AS p, items BETWEEN 1 AND 3 AS q, CASE WHEN items > 1 THEN 'many' ELSE 'one' END AS r,
  extract(HOUR FROM ts) AS s, nvl(country, 'none') AS t, named_struct('a', items).a AS u,
  regexp_extract(id, '(x)', 1) AS v, items >> 1 AS w, id LIKE ANY ('a%', 'b%') AS x, date '2020-01-01' AS y,
  timestampadd(HOUR, 1, ts) AS z, NOT (items = 1) AS aa, - items AS bb, `date` AS cc, to_date(id, 'yyyy') AS dd
FROM payments
-- view: v, 0 us
-- from: payments
-- output: a = items div 2
-- output: b = items % 2
-- output: c = amount <=> 1
-- output: d = cast(id as int)
-- output: e = try_cast(id as int)
-- output: f = items :: string
-- output: g = date_trunc('hour', ts)
-- output: h = ts + interval 1 hour
-- output: i = ts - interval '1-2' year to month
-- output: j = transform(tags, x -> upper(x) || id)
-- output: k = aggregate(tags, 0, (total, x) -> total + length(x))
-- output: l = tags[0]
-- output: m = address.`zip code`
-- output: n = id rlike '^a\\d+$'
-- output: o = id like 'a!%' escape '!'
-- output: p = id not in ('a', 'b')
-- output: q = items between 1 and 3
-- output: r = case when items > 1 then 'many' else 'one' end
-- output: s = extract(hour from ts)
-- output: t = nvl(Country, 'none')
-- output: u = named_struct('a', items).a
-- output: v = regexp_extract(id, '(x)', 1)
-- output: w = items >> 1
-- output: x = id like any ('a%', 'b%')
-- output: y = date '2020-01-01'
-- output: z = timestampadd(hour, 1, ts)
-- output: aa = not (items = 1)
-- output: bb = - items
-- output: cc = date
-- output: dd = to_date(id, 'yyyy')

-- case: white space and comments do not reach the expression
CREATE MATERIALIZED VIEW v AS
SELECT  upper (  country )||'x'   AS a /* why */, ( items+1 ) * -2 AS b
FROM payments -- here
WHERE items>1 AND(items<3)
-- view: v, 0 us
-- from: payments
-- where: items > 1 and (items < 3)
-- output: a = upper(Country) || 'x'
-- output: b = (items + 1) * - 2

-- case: IS DISTINCT FROM is not the end of the select list
CREATE MATERIALIZED VIEW v AS
SELECT country IS DISTINCT FROM 'de' AS a, country IS NOT DISTINCT FROM 'de' AS b FROM payments
-- view: v, 0 us
-- from: payments
-- output: a = Country is distinct from 'de'
-- output: b = Country is not distinct from 'de'

-- case: columns named like clauses are columns
CREATE STREAM s (limit INT, offset INT, window STRING, left INT);
CREATE MATERIALIZED VIEW v AS SELECT limit, offset, window, left FROM s WHERE offset > limit AND limit < 3
-- stream: s (limit INT, offset INT, window STRING, left INT) from s, key None, timestamps None
-- view: v, 0 us
-- from: s
-- where: offset > limit and limit < 3
-- output: limit = limit
-- output: offset = offset
-- output: window = window
-- output: left = left

-- case: a global aggregate is one group without keys
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n, avg(price) AS mean_price, mean(price) AS same FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = count()
-- call: call_1 = avg(price)
-- output: n = call_0
-- output: mean_price = call_1
-- output: same = call_1

-- case: grouping by an expression, found again in any case and spacing
CREATE MATERIALIZED VIEW v AS SELECT LOWER( Country ) AS c, count(id) AS n FROM payments GROUP BY lower(country)
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = lower(Country)
-- call: call_0 = count(id)
-- output: c = key_0
-- output: n = call_0

-- case: grouping by ordinal and by column
CREATE MATERIALIZED VIEW v AS
SELECT lower(country) AS c, card, min(items) AS a, max(items) AS b FROM payments GROUP BY 1, card
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = lower(Country)
-- key: key_1 = card
-- call: call_0 = min(items)
-- call: call_1 = max(items)
-- output: c = key_0
-- output: card = key_1
-- output: a = call_0
-- output: b = call_1

-- case: grouping by alias
CREATE MATERIALIZED VIEW v AS SELECT upper(card) AS c, count(*) AS n FROM payments GROUP BY c
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = upper(card)
-- call: call_0 = count()
-- output: c = key_0
-- output: n = call_0

-- case: a column of the stream comes before an alias in GROUP BY
CREATE MATERIALIZED VIEW v AS SELECT upper(card) AS card, count(*) AS n FROM payments GROUP BY card
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = card
-- call: call_0 = count()
-- output: card = upper(key_0)
-- output: n = call_0

-- case: what depends on the keys alone is an expression over them, and no key
CREATE MATERIALIZED VIEW v AS
SELECT upper(country) AS c, date_trunc('hour', window.start) AS hour, window.end AS until, count(*) AS n
FROM payments GROUP BY country, window(ts, '5 minutes')
-- view: v, 0 us
-- from: payments
-- window: 300000000 us
-- key: key_0 = Country
-- call: call_0 = count()
-- output: c = upper(key_0)
-- output: hour = date_trunc('hour', _window_start)
-- output: until = _window_end
-- output: n = call_0

-- case: expressions over aggregates
CREATE MATERIALIZED VIEW v AS
SELECT sum(amount) / count(*) AS a, CASE WHEN max(items) > 3 THEN 'many' ELSE country END AS b,
  coalesce(sum(items), 0) + length(country) AS c, abs(-sum(items)) AS d, if(count(*) > 1, 1, 2) AS e,
  CAST(sum(items) AS DOUBLE) AS f, nullif(min(items), 0) IS NULL AS g,
  sum(items) BETWEEN 1 AND 2 OR count(*) IN (1, 2) AS h FROM payments GROUP BY country
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = Country
-- call: call_0 = sum(amount)
-- call: call_1 = count()
-- call: call_2 = max(items)
-- call: call_3 = sum(items)
-- call: call_4 = min(items)
-- output: a = call_0 / call_1
-- output: b = case when call_2 > 3 then 'many' else key_0 end
-- output: c = coalesce(call_3, 0) + length(key_0)
-- output: d = abs(- call_3)
-- output: e = if(call_1 > 1, 1, 2)
-- output: f = cast(call_3 as double)
-- output: g = nullif(call_4, 0) is null
-- output: h = call_3 between 1 and 2 or call_1 in (1, 2)

-- case: the same call is one call
CREATE MATERIALIZED VIEW v AS SELECT sum(items) AS a, sum( p.items ) * 2 AS b, SUM(Items) AS c FROM payments p
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = sum(items)
-- output: a = call_0
-- output: b = call_0 * 2
-- output: c = call_0

-- case: HAVING uses aggregates, keys and outputs
CREATE MATERIALIZED VIEW v AS
SELECT country, count(*) AS n, sum(items) + 1 AS total FROM payments GROUP BY country
HAVING n > 3 AND sum(items) > 5 AND country <> 'x' AND total * n > 9
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = Country
-- call: call_0 = count()
-- call: call_1 = sum(items)
-- having: call_0 > 3 and call_1 > 5 and key_0 <> 'x' and (call_1 + 1) * call_0 > 9
-- output: Country = key_0
-- output: n = call_0
-- output: total = call_1 + 1

-- case: HAVING over keys alone
CREATE MATERIALIZED VIEW v AS SELECT country FROM payments GROUP BY country HAVING country LIKE 'd%'
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = Country
-- having: key_0 like 'd%'
-- output: Country = key_0

-- case: an aggregate of an expression
CREATE MATERIALIZED VIEW v AS
SELECT sum(CASE WHEN country = 'de' THEN amount ELSE 0 END) AS de FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = sum(case when Country = 'de' then amount else 0 end)
-- output: de = call_0

-- case: a constant stands beside aggregates
CREATE MATERIALIZED VIEW v AS SELECT 'all' AS what, -1 AS minus, count(*) AS n FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = count()
-- output: what = 'all'
-- output: minus = - 1
-- output: n = call_0

-- case: a window of days and weeks
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '2 weeks 1 day')
-- view: v, 0 us
-- from: payments
-- window: 1296000000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0

-- case: a view may come before its stream, and names are found in any case
CREATE MATERIALIZED VIEW v AS SELECT a FROM LATER;
CREATE STREAM later (a INT)
-- stream: later (a INT) from later, key None, timestamps None
-- view: v, 0 us
-- from: later
-- output: a = a

-- case: SELECT ALL is SELECT
CREATE MATERIALIZED VIEW v AS SELECT ALL text FROM notes
-- view: v, 0 us
-- from: notes
-- output: text = text

-- case: a column hides a function without parentheses
CREATE STREAM s (user STRING, current_date STRING);
CREATE MATERIALIZED VIEW v AS SELECT user, `current_date` AS d FROM s
-- stream: s (user STRING, current_date STRING) from s, key None, timestamps None
-- view: v, 0 us
-- from: s
-- output: user = user
-- output: d = current_date

-- case: grouping without aggregates keeps each group once
CREATE MATERIALIZED VIEW v AS SELECT country FROM payments GROUP BY country
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = Country
-- output: Country = key_0

-- case: a key in parentheses is the same key
CREATE MATERIALIZED VIEW v AS
SELECT (items + 1) * 2 AS a, count(*) * (items + 1) AS b FROM payments GROUP BY (items + 1)
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = items + 1
-- call: call_0 = count()
-- output: a = key_0 * 2
-- output: b = call_0 * key_0

-- case: a window may be one ordinal among others, and window.start adds no key to it
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, country, count(*) AS n FROM payments GROUP BY window(ts, '1 hour'), 1, 2
-- view: v, 0 us
-- from: payments
-- window: 3600000000 us
-- key: key_0 = Country
-- call: call_0 = count()
-- output: w = _window_start
-- output: Country = key_0
-- output: n = call_0

-- case: within an aggregate of HAVING a name is a column, although an output has the same name
CREATE MATERIALIZED VIEW v AS
SELECT country, max(items) AS items FROM payments p GROUP BY country HAVING max(items) > 3 AND max(p.items) < 9
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = Country
-- call: call_0 = max(items)
-- having: call_0 > 3 and call_0 < 9
-- output: Country = key_0
-- output: items = call_0

-- case: case tells the keys of a MAP apart, and nothing else
CREATE STREAM maps (M MAP<STRING, STRUCT<n: INT>>, s STRUCT<a: MAP<STRING, INT>>, l ARRAY<STRUCT<b: INT>>);
CREATE MATERIALIZED VIEW v AS
SELECT m.A AS a, max(m.a) AS b, max(M.`A`.N) AS c, max(m.A.n) AS d, max(S.A.K) AS e, max(s.a.k) AS f, max(s.A.k) AS g,
  max(maps.L.b) AS h, max(l.B) AS i FROM maps GROUP BY m.A, m.a
-- stream: maps (M MAP<STRING, STRUCT<n: INT>>, s STRUCT<a: MAP<STRING, INT>>, l ARRAY<STRUCT<b: INT>>) from maps, key None, timestamps None
-- view: v, 0 us
-- from: maps
-- window: none
-- key: key_0 = M.A
-- key: key_1 = M.a
-- call: call_0 = max(M.a)
-- call: call_1 = max(M.A.n)
-- call: call_2 = max(s.a.K)
-- call: call_3 = max(s.a.k)
-- call: call_4 = max(l.b)
-- output: a = key_0
-- output: b = call_0
-- output: c = call_1
-- output: d = call_1
-- output: e = call_2
-- output: f = call_3
-- output: g = call_3
-- output: h = call_4
-- output: i = call_4

-- case: keys within expressions, by their longest path
CREATE MATERIALIZED VIEW v AS
SELECT address.city || tags[0] AS a, upper(p.Tags [ 0 ]) AS b, max(watermark()) AS w, count(*) + length(address.`zip code`) AS c
FROM payments p GROUP BY tags[0], p.address, address.CITY
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = tags[0]
-- key: key_1 = address
-- key: key_2 = address.city
-- call: call_0 = max(_watermark)
-- call: call_1 = count()
-- output: a = key_2 || key_0
-- output: b = upper(key_0)
-- output: w = call_0
-- output: c = call_1 + length(key_1.`zip code`)

-- case: a key over the window and a column
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, seen - window.start AS since, count(*) AS n
FROM payments GROUP BY window(ts, '1 hour'), seen - window.start, window_time(window)
-- view: v, 0 us
-- from: payments
-- window: 3600000000 us
-- key: key_0 = seen - _window_start
-- call: call_0 = count()
-- output: w = _window_start
-- output: since = key_0
-- output: n = call_0

-- case: braces, and a number and a sign that touch
CREATE MATERIALIZED VIEW v AS SELECT '{0}' || id || '{' AS a, 1e3+5 AS b FROM payments
-- view: v, 0 us
-- from: payments
-- output: a = '{0}' || id || '{'
-- output: b = 1e3 + 5

-- case: braces in names are no holes
CREATE MATERIALIZED VIEW v AS
SELECT struct(items AS `{3}`) AS a, transform(tags, `{0}` -> upper(`{0}`)) AS b FROM payments
-- view: v, 0 us
-- from: payments
-- output: a = struct(items as `{3}`)
-- output: b = transform(tags, `{0}` -> upper(`{0}`))

-- case: a variable in quotes stays in quotes, for it may be a word of the language
CREATE MATERIALIZED VIEW v AS
SELECT transform(tags, `true` -> `true`) AS a, transform(tags, x -> x) AS b FROM payments
-- view: v, 0 us
-- from: payments
-- output: a = transform(tags, `true` -> `true`)
-- output: b = transform(tags, x -> x)

-- case: what stands in a raw text is text
CREATE MATERIALIZED VIEW v AS
SELECT card FROM payments WHERE card LIKE r'.' AND card <> r'('
-- view: v, 0 us
-- from: payments
-- where: card like r'.' and card <> r'('
-- output: card = card

-- case: an output is used by name in HAVING where a key is an expression of the same kind
CREATE MATERIALIZED VIEW v AS
SELECT items > 1 AS many, count(*) AS n FROM payments GROUP BY many HAVING n > 2
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = items > 1
-- call: call_0 = count()
-- having: call_0 > 2
-- output: many = key_0
-- output: n = call_0

-- case: an edge of windows that overlap is compared by the name of its output
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments
GROUP BY window(ts, '2 minutes', '1 minute') HAVING w > TIMESTAMP '2026-01-01 00:00:00'
-- view: v, 0 us
-- from: payments
-- window: hopping, 120000000 us, every 60000000 us
-- call: call_0 = count()
-- having: _window_start > timestamp '2026-01-01 00:00:00'
-- output: w = _window_start
-- output: n = call_0
