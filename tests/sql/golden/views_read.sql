-- case: the view of the design
CREATE MATERIALIZED VIEW spend_per_minute WITH (allowed_lateness = '10 minutes') AS
SELECT window.start AS minute, country, count(*) AS n, sum(amount) AS total
FROM payments GROUP BY window(ts, '1 minute'), country;
-- view: spend_per_minute, grouped over payments, 600000000 us
-- window: 60000000 us
-- key: k0 = Country
-- call: a0 = count of None
-- call: a1 = sum of amount
-- output: minute = window_start
-- output: Country = k0
-- output: n = a0
-- output: total = a1

-- case: a star is written out, and aliases vanish
CREATE MATERIALIZED VIEW v AS
SELECT p.*, upper(P.`country`) AS c FROM payments AS p WHERE p.amount > 1.5 AND p.address.city = 'x'
-- view: v, plain over payments, 0 us
-- where: amount > 1.5 AND address.city = 'x'
-- output: id = id
-- output: card = card
-- output: amount = amount
-- output: Country = Country
-- output: items = items
-- output: price = price
-- output: tags = tags
-- output: address = address
-- output: date = `date`
-- output: ts = ts
-- output: seen = seen
-- output: c = upper(Country)

-- case: a star without an alias
CREATE MATERIALIZED VIEW v AS SELECT * FROM notes
-- view: v, plain over notes, 0 us
-- output: text = `text`

-- case: a view may be made of one expression
CREATE MATERIALIZED VIEW v AS SELECT text || '!' AS loud FROM notes n WHERE n.text IS NOT NULL
-- view: v, plain over notes, 0 us
-- where: `text` IS NOT NULL
-- output: loud = `text` || '!'

-- case: literals reach Spark as they were written, a doubled quote as an escaped one
CREATE MATERIALIZED VIEW v AS
SELECT 'it''s' AS a, 'it\'s' AS b, "double ""quotes""" AS c, 'line\nbreak' AS d, r'\d+' AS e, X'1F' AS f,
  1L AS g, 1.5BD AS h, 1e3 AS i, 'é日本😀' AS j, '' AS k, 2S AS l, '\\d' AS m, '''' AS n, 'a' 'b' AS o,
  'a\'''b' AS p FROM notes
-- view: v, plain over notes, 0 us
-- output: a = 'it\'s'
-- output: b = 'it\'s'
-- output: c = "double \"quotes\""
-- output: d = 'line\nbreak'
-- output: e = r'\d+'
-- output: f = X'1F'
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
-- view: v, plain over payments, 0 us
-- output: a = items div 2
-- output: b = items % 2
-- output: c = amount <=> 1
-- output: d = CAST(id AS INT)
-- output: e = TRY_CAST(id AS INT)
-- output: f = items :: STRING
-- output: g = date_trunc('hour', ts)
-- output: h = ts + INTERVAL 1 HOUR
-- output: i = ts - INTERVAL '1-2' YEAR TO MONTH
-- output: j = transform(tags, x -> upper(x) || id)
-- output: k = aggregate(tags, 0, (total, x) -> total + length(x))
-- output: l = tags[0]
-- output: m = address.`zip code`
-- output: n = id RLIKE '^a\\d+$'
-- output: o = id LIKE 'a!%' ESCAPE '!'
-- output: p = id NOT IN ('a', 'b')
-- output: q = items BETWEEN 1 AND 3
-- output: r = CASE WHEN items > 1 THEN 'many' ELSE 'one' END
-- output: s = extract(HOUR FROM ts)
-- output: t = nvl(Country, 'none')
-- output: u = named_struct('a', items).a
-- output: v = regexp_extract(id, '(x)', 1)
-- output: w = items >> 1
-- output: x = id LIKE ANY ('a%', 'b%')
-- output: y = date '2020-01-01'
-- output: z = timestampadd(HOUR, 1, ts)
-- output: aa = NOT (items = 1)
-- output: bb = - items
-- output: cc = `date`
-- output: dd = to_date(id, 'yyyy')

-- case: white space and comments do not reach the expression
CREATE MATERIALIZED VIEW v AS
SELECT  upper (  country )||'x'   AS a /* why */, ( items+1 ) * -2 AS b
FROM payments -- here
WHERE items>1 AND(items<3)
-- view: v, plain over payments, 0 us
-- where: items > 1 AND (items < 3)
-- output: a = upper(Country) || 'x'
-- output: b = (items + 1) * - 2

-- case: IS DISTINCT FROM is not the end of the select list
CREATE MATERIALIZED VIEW v AS
SELECT country IS DISTINCT FROM 'de' AS a, country IS NOT DISTINCT FROM 'de' AS b FROM payments
-- view: v, plain over payments, 0 us
-- output: a = Country IS DISTINCT FROM 'de'
-- output: b = Country IS NOT DISTINCT FROM 'de'

-- case: columns named like clauses are columns
CREATE STREAM s (limit INT, offset INT, window STRING, left INT);
CREATE MATERIALIZED VIEW v AS SELECT limit, offset, window, left FROM s WHERE offset > limit AND limit < 3
-- stream: s (limit INT, offset INT, window STRING, left INT) from s, key None, timestamps None
-- view: v, plain over s, 0 us
-- where: `offset` > `limit` AND `limit` < 3
-- output: limit = `limit`
-- output: offset = `offset`
-- output: window = `window`
-- output: left = `left`

-- case: a global aggregate is one group without keys
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n, avg(price) AS mean_price, mean(price) AS same FROM payments
-- view: v, grouped over payments, 0 us
-- call: a0 = count of None
-- call: a1 = avg of price
-- output: n = a0
-- output: mean_price = a1
-- output: same = a1

-- case: grouping by an expression, found again in any case and spacing
CREATE MATERIALIZED VIEW v AS SELECT LOWER( Country ) AS c, count(id) AS n FROM payments GROUP BY lower(country)
-- view: v, grouped over payments, 0 us
-- key: k0 = lower(Country)
-- call: a0 = count of id
-- output: c = k0
-- output: n = a0

-- case: grouping by ordinal and by column
CREATE MATERIALIZED VIEW v AS
SELECT lower(country) AS c, card, min(items) AS a, max(items) AS b FROM payments GROUP BY 1, card
-- view: v, grouped over payments, 0 us
-- key: k0 = lower(Country)
-- key: k1 = card
-- call: a0 = min of items
-- call: a1 = max of items
-- output: c = k0
-- output: card = k1
-- output: a = a0
-- output: b = a1

-- case: grouping by alias
CREATE MATERIALIZED VIEW v AS SELECT upper(card) AS c, count(*) AS n FROM payments GROUP BY c
-- view: v, grouped over payments, 0 us
-- key: k0 = upper(card)
-- call: a0 = count of None
-- output: c = k0
-- output: n = a0

-- case: a column of the stream comes before an alias in GROUP BY
CREATE MATERIALIZED VIEW v AS SELECT upper(card) AS card, count(*) AS n FROM payments GROUP BY card
-- view: v, grouped over payments, 0 us
-- key: k0 = card
-- key: k1 = upper(card)
-- call: a0 = count of None
-- output: card = k1
-- output: n = a0

-- case: what depends on the keys alone becomes another key, computed by Spark
CREATE MATERIALIZED VIEW v AS
SELECT upper(country) AS c, date_trunc('hour', window.start) AS hour, window.end AS until, count(*) AS n
FROM payments GROUP BY country, window(ts, '5 minutes')
-- view: v, grouped over payments, 0 us
-- window: 300000000 us
-- key: k0 = Country
-- key: k1 = upper(Country)
-- key: k2 = date_trunc('hour', window.start)
-- call: a0 = count of None
-- output: c = k1
-- output: hour = k2
-- output: until = window_end
-- output: n = a0

-- case: expressions over aggregates
CREATE MATERIALIZED VIEW v AS
SELECT sum(amount) / count(*) AS a, CASE WHEN max(items) > 3 THEN 'many' ELSE country END AS b,
  coalesce(sum(items), 0) + length(country) AS c, abs(-sum(items)) AS d, if(count(*) > 1, 1, 2) AS e,
  CAST(sum(items) AS DOUBLE) AS f, nullif(min(items), 0) IS NULL AS g,
  sum(items) BETWEEN 1 AND 2 OR count(*) IN (1, 2) AS h FROM payments GROUP BY country
-- view: v, grouped over payments, 0 us
-- key: k0 = Country
-- key: k1 = length(Country)
-- call: a0 = sum of amount
-- call: a1 = count of None
-- call: a2 = max of items
-- call: a3 = sum of items
-- call: a4 = min of items
-- output: a = a0 / a1
-- output: b = CASE WHEN a2 > 3 THEN 'many' ELSE k0 END
-- output: c = COALESCE(a3, 0) + k1
-- output: d = ABS(-a3)
-- output: e = IF(a1 > 1, 1, 2)
-- output: f = CAST(a3 AS DOUBLE)
-- output: g = NULLIF(a4, 0) IS NULL
-- output: h = a3 BETWEEN 1 AND 2 OR a1 IN (1, 2)

-- case: the same call is one call
CREATE MATERIALIZED VIEW v AS SELECT sum(items) AS a, sum( p.items ) * 2 AS b, SUM(Items) AS c FROM payments p
-- view: v, grouped over payments, 0 us
-- call: a0 = sum of items
-- output: a = a0
-- output: b = a0 * 2
-- output: c = a0

-- case: HAVING uses aggregates, keys and outputs
CREATE MATERIALIZED VIEW v AS
SELECT country, count(*) AS n, sum(items) + 1 AS total FROM payments GROUP BY country
HAVING n > 3 AND sum(items) > 5 AND country <> 'x' AND total * n > 9
-- view: v, grouped over payments, 0 us
-- key: k0 = Country
-- call: a0 = count of None
-- call: a1 = sum of items
-- output: Country = k0
-- output: n = a0
-- output: total = a1 + 1
-- having: a0 > 3 AND a1 > 5 AND k0 <> 'x' AND (a1 + 1) * a0 > 9

-- case: HAVING over keys alone is computed by Spark
CREATE MATERIALIZED VIEW v AS SELECT country FROM payments GROUP BY country HAVING country LIKE 'd%'
-- view: v, grouped over payments, 0 us
-- key: k0 = Country
-- key: k1 = Country LIKE 'd%'
-- output: Country = k0
-- having: k1

-- case: an aggregate of an expression
CREATE MATERIALIZED VIEW v AS
SELECT sum(CASE WHEN country = 'de' THEN amount ELSE 0 END) AS de FROM payments
-- view: v, grouped over payments, 0 us
-- call: a0 = sum of CASE WHEN Country = 'de' THEN amount ELSE 0 END
-- output: de = a0

-- case: a constant stands beside aggregates
CREATE MATERIALIZED VIEW v AS SELECT 'all' AS what, -1 AS minus, count(*) AS n FROM payments
-- view: v, grouped over payments, 0 us
-- call: a0 = count of None
-- output: what = 'all'
-- output: minus = - 1
-- output: n = a0

-- case: a window of days and weeks
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY window(ts, '2 weeks 1 day')
-- view: v, grouped over payments, 0 us
-- window: 1296000000000 us
-- call: a0 = count of None
-- output: w = window_start
-- output: n = a0

-- case: a view may come before its stream, and names are found in any case
CREATE MATERIALIZED VIEW v AS SELECT a FROM LATER;
CREATE STREAM later (a INT)
-- stream: later (a INT) from later, key None, timestamps None
-- view: v, plain over later, 0 us
-- output: a = a

-- case: SELECT ALL is SELECT
CREATE MATERIALIZED VIEW v AS SELECT ALL text FROM notes
-- view: v, plain over notes, 0 us
-- output: text = `text`

-- case: a column hides a function without parentheses
CREATE STREAM s (user STRING, current_date STRING);
CREATE MATERIALIZED VIEW v AS SELECT user, `current_date` AS d FROM s
-- stream: s (user STRING, current_date STRING) from s, key None, timestamps None
-- view: v, plain over s, 0 us
-- output: user = `user`
-- output: d = `current_date`

-- case: grouping without aggregates keeps each group once
CREATE MATERIALIZED VIEW v AS SELECT country FROM payments GROUP BY country
-- view: v, grouped over payments, 0 us
-- key: k0 = Country
-- output: Country = k0

-- case: a key in parentheses is the same key
CREATE MATERIALIZED VIEW v AS
SELECT (items + 1) * 2 AS a, count(*) * (items + 1) AS b FROM payments GROUP BY (items + 1)
-- view: v, grouped over payments, 0 us
-- key: k0 = (items + 1)
-- key: k1 = (items + 1) * 2
-- call: a0 = count of None
-- output: a = k1
-- output: b = a0 * k0

-- case: a window may be one ordinal among others, and window.start adds no key to it
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, country, count(*) AS n FROM payments GROUP BY window(ts, '1 hour'), 1, 2
-- view: v, grouped over payments, 0 us
-- window: 3600000000 us
-- key: k0 = Country
-- call: a0 = count of None
-- output: w = window_start
-- output: Country = k0
-- output: n = a0

-- case: within an aggregate of HAVING a name is a column, although an output has the same name
CREATE MATERIALIZED VIEW v AS
SELECT country, max(items) AS items FROM payments p GROUP BY country HAVING max(items) > 3 AND max(p.items) < 9
-- view: v, grouped over payments, 0 us
-- key: k0 = Country
-- call: a0 = max of items
-- output: Country = k0
-- output: items = a0
-- having: a0 > 3 AND a0 < 9

-- case: case tells the keys of a MAP apart, and nothing else
CREATE STREAM maps (M MAP<STRING, STRUCT<n: INT>>, s STRUCT<a: MAP<STRING, INT>>, l ARRAY<STRUCT<b: INT>>);
CREATE MATERIALIZED VIEW v AS
SELECT m.A AS a, max(m.a) AS b, max(M.`A`.N) AS c, max(m.A.n) AS d, max(S.A.K) AS e, max(s.a.k) AS f, max(s.A.k) AS g,
  max(maps.L.b) AS h, max(l.B) AS i FROM maps GROUP BY m.A, m.a
-- stream: maps (M MAP<STRING, STRUCT<n: INT>>, s STRUCT<a: MAP<STRING, INT>>, l ARRAY<STRUCT<b: INT>>) from maps, key None, timestamps None
-- view: v, grouped over maps, 0 us
-- key: k0 = M.A
-- key: k1 = M.a
-- call: a0 = max of M.a
-- call: a1 = max of M.`A`.N
-- call: a2 = max of s.A.K
-- call: a3 = max of s.a.k
-- call: a4 = max of l.b
-- output: a = k0
-- output: b = a0
-- output: c = a1
-- output: d = a1
-- output: e = a2
-- output: f = a3
-- output: g = a3
-- output: h = a4
-- output: i = a4
