-- case: a common table expression is a query of its own
CREATE MATERIALIZED VIEW v AS
WITH big AS (SELECT id, amount * 2 AS twice FROM payments WHERE amount > 5)
SELECT b.id, twice + 1 AS more FROM big b WHERE twice < 100
-- view: v, 0 us
-- from: payments
-- where: amount > 5
-- output: id = id
-- output: twice = amount * 2
-- where: twice < 100
-- output: id = id
-- output: more = twice + 1

-- case: common table expressions see those before them, and may give names to columns
CREATE MATERIALIZED VIEW v AS
WITH a (x, `when`) AS (SELECT amount, ts FROM payments), b AS (SELECT * FROM a WHERE x > 0)
SELECT window.start AS minute, sum(x) AS total FROM b GROUP BY window(`when`, '1 minute')
-- view: v, 0 us
-- from: payments
-- output: x = amount
-- output: when = ts
-- where: x > 0
-- output: x = x
-- output: when = when
-- window: 60000000 us
-- call: call_0 = sum(x)
-- output: minute = _window_start
-- output: total = call_0

-- case: a common table expression hides a stream, and within itself it does not
CREATE MATERIALIZED VIEW v AS WITH notes AS (SELECT upper(text) AS loud FROM notes) SELECT loud FROM notes
-- view: v, 0 us
-- from: notes
-- output: loud = upper(text)
-- output: loud = loud

-- case: common table expressions within others
CREATE MATERIALIZED VIEW v AS
WITH a AS (WITH b AS (SELECT text AS t FROM notes) SELECT t AS u FROM b)
SELECT c.u FROM (WITH c AS (SELECT u FROM a) SELECT u FROM c) c
-- view: v, 0 us
-- from: notes
-- output: t = text
-- output: u = t
-- output: u = u
-- output: u = u
-- output: u = u

-- case: a subquery with an alias and a column list
CREATE MATERIALIZED VIEW v AS SELECT t.x, y FROM (SELECT id, card FROM payments) AS t (x, y) WHERE t.y = 'a'
-- view: v, 0 us
-- from: payments
-- output: x = id
-- output: y = card
-- where: y = 'a'
-- output: x = x
-- output: y = y

-- case: a subquery without an alias, in more parentheses than needed
CREATE MATERIALIZED VIEW v AS SELECT id FROM (((SELECT * FROM (payments) p)))
-- view: v, 0 us
-- from: payments
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
-- output: id = id

-- case: fields of columns that are passed on, whose type is known or not
CREATE MATERIALIZED VIEW v AS
SELECT a.CITY, b.City AS c FROM (SELECT address AS a, named_struct('City', text) AS b FROM (SELECT *, id AS text FROM payments))
-- view: v, 0 us
-- from: payments
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
-- output: text = id
-- output: a = address
-- output: b = named_struct('City', text)
-- output: CITY = a.city
-- output: c = b.City

-- case: windows over a subquery that passes the event time on under another name
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM (SELECT ts AS at FROM payments) GROUP BY window(at, '1 hour')
-- view: v, 0 us
-- from: payments
-- output: at = ts
-- window: 3600000000 us
-- call: call_0 = count()
-- output: s = _window_start
-- output: n = call_0

-- case: watermark() over a subquery makes those below pass it on
CREATE MATERIALIZED VIEW v AS
SELECT id, watermark() AS w FROM (SELECT id, at FROM (SELECT id, ts AS at FROM payments))
-- view: v, 0 us
-- from: payments
-- output: id = id
-- output: at = ts
-- output: _watermark = _watermark
-- output: id = id
-- output: at = at
-- output: _watermark = _watermark
-- output: id = id
-- output: w = _watermark

-- case: watermark() below is passed on no further
CREATE MATERIALIZED VIEW v AS SELECT id FROM (SELECT id, ts FROM payments WHERE ts > watermark())
-- view: v, 0 us
-- from: payments
-- where: ts > _watermark
-- output: id = id
-- output: ts = ts
-- output: id = id

-- case: union all
CREATE MATERIALIZED VIEW v AS SELECT id, amount FROM payments UNION ALL SELECT text, 1 AS one FROM notes
-- view: v, 0 us
-- branch: 0
-- from: payments
-- output: id = id
-- output: amount = amount
-- branch: 1
-- from: notes
-- output: id = text
-- output: amount = 1
-- union: of 2

-- case: the same stream twice, and a third query
CREATE MATERIALIZED VIEW v AS
SELECT text FROM notes UNION ALL SELECT text FROM notes UNION ALL SELECT id FROM payments
-- view: v, 0 us
-- branch: 0
-- from: notes
-- output: text = text
-- branch: 1
-- from: notes
-- output: text = text
-- branch: 2
-- from: payments
-- output: text = id
-- union: of 3

-- case: parentheses around queries of UNION ALL
CREATE MATERIALIZED VIEW v AS
((SELECT text FROM notes) UNION ALL (SELECT id FROM payments)) UNION ALL (SELECT text FROM notes UNION ALL SELECT card FROM payments)
-- view: v, 0 us
-- branch: 0
-- from: notes
-- output: text = text
-- branch: 1
-- from: payments
-- output: text = id
-- branch: 2
-- branch: 0
-- from: notes
-- output: text = text
-- branch: 1
-- from: payments
-- output: text = card
-- union: of 2
-- union: of 3

-- case: union all below a window, whose event time is in the same place of each query
CREATE STREAM sales (id STRING, at TIMESTAMP NOT NULL, WATERMARK FOR at AS at);
CREATE MATERIALIZED VIEW v AS
WITH every AS (SELECT ts, id FROM payments UNION ALL SELECT at, id FROM sales)
SELECT window.start AS minute, count(*) AS n, max(watermark()) AS w FROM every
GROUP BY window(ts, '1 minute') HAVING n > 1
-- stream: sales (id STRING, at TIMESTAMP NOT NULL) from sales, time at - 0 us, key None, timestamps None
-- view: v, 0 us
-- branch: 0
-- from: payments
-- output: ts = ts
-- output: id = id
-- output: _watermark = _watermark
-- branch: 1
-- from: sales
-- output: ts = at
-- output: id = id
-- output: _watermark = _watermark
-- union: of 2
-- window: 60000000 us
-- call: call_0 = count()
-- call: call_1 = max(_watermark)
-- having: call_0 > 1
-- output: minute = _window_start
-- output: n = call_0
-- output: w = call_1

-- case: a column list over union all names the columns of the first query
CREATE MATERIALIZED VIEW v AS
SELECT y FROM (SELECT text FROM notes UNION ALL SELECT id FROM payments) AS t (y)
-- view: v, 0 us
-- branch: 0
-- from: notes
-- output: y = text
-- branch: 1
-- from: payments
-- output: y = id
-- union: of 2
-- output: y = y

-- case: select and filter over groups
CREATE MATERIALIZED VIEW v AS
SELECT k, c + 1 AS d, upper(k) AS loud FROM (SELECT Country AS k, count(*) AS c FROM payments GROUP BY Country) WHERE c > 5 AND k IS NOT NULL
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = Country
-- call: call_0 = count()
-- output: k = key_0
-- output: c = call_0
-- where: c > 5 and k is not null
-- output: k = k
-- output: d = c + 1
-- output: loud = upper(k)

-- case: select over groups in windows
CREATE MATERIALIZED VIEW v WITH (emit = 'final') AS
WITH g AS (SELECT window.start AS s, count(*) AS c FROM payments GROUP BY window(ts, '1 minute'))
SELECT s, c, c * 2 AS twice, date_format(s, 'HH:mm') AS at FROM g WHERE c BETWEEN 1 AND 10
-- view: v, 0 us, emit final
-- from: payments
-- window: 60000000 us
-- call: call_0 = count()
-- output: s = _window_start
-- output: c = call_0
-- where: c between 1 and 10
-- output: s = s
-- output: c = c
-- output: twice = c * 2
-- output: at = date_format(s, 'HH:mm')

-- case: outputs that get their names elsewhere need none of their own, and may repeat one
CREATE MATERIALIZED VIEW v AS SELECT text, 1 AS n FROM notes UNION ALL SELECT id || 'x', 2 FROM payments UNION ALL SELECT id, id FROM payments;
CREATE MATERIALIZED VIEW w AS WITH a (x, y) AS (SELECT upper(text), 1 FROM notes) SELECT x, z FROM (SELECT x, y + 1 FROM a) AS b (x, z)
-- view: v, 0 us
-- branch: 0
-- from: notes
-- output: text = text
-- output: n = 1
-- branch: 1
-- from: payments
-- output: text = id || 'x'
-- output: n = 2
-- branch: 2
-- from: payments
-- output: text = id
-- output: n = id
-- union: of 3
-- view: w, 0 us
-- from: notes
-- output: x = upper(text)
-- output: y = 1
-- output: x = x
-- output: z = y + 1
-- output: x = x
-- output: z = z

-- case: only the first query of a union names the outputs
CREATE MATERIALIZED VIEW v AS
SELECT id, upper(country) AS c FROM payments UNION ALL (SELECT concat(id, 'x'), _topic FROM payments);
-- view: v, 0 us
-- branch: 0
-- from: payments
-- output: id = id
-- output: c = upper(Country)
-- branch: 1
-- from: payments
-- output: id = concat(id, 'x')
-- output: c = _topic
-- union: of 2
