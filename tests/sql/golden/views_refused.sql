-- case: an unknown stream suggests the closest
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payment
-- error: case.sql:2:16: there is no stream or view payment (did you mean payments?); define it with CREATE STREAM or CREATE VIEW, or correct its name

-- case: a view over a view
CREATE MATERIALIZED VIEW v AS
SELECT a FROM v
-- error: case.sql:2:15: v is a materialized view, and views over views are not built yet; write its query as CREATE VIEW or CREATE STREAM ... AS, which others can read, or read the streams that v reads

-- case: an unknown column suggests the closest
CREATE MATERIALIZED VIEW v AS
SELECT id, amont AS a FROM payments WHERE countri = 'x'
-- error: case.sql:2:12: payments has no column amont (did you mean amount?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen
-- error: case.sql:2:43: payments has no column countri (did you mean Country?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: an unknown qualifier
CREATE MATERIALIZED VIEW v AS
SELECT payments.id FROM payments p
-- error: case.sql:2:8: payments has no column payments.id (the stream is called p here); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: an unknown column of the alias
CREATE MATERIALIZED VIEW v AS
SELECT p.idd FROM payments p
-- error: case.sql:2:10: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: joins
CREATE MATERIALIZED VIEW v AS
SELECT p.id FROM payments p JOIN notes n ON p.id = n.text
-- error: case.sql:2:29: joins are not built yet; join when you read the views

-- case: left joins, and the problem behind them
CREATE MATERIALIZED VIEW v AS
SELECT p.id FROM payments p LEFT JOIN notes n ON p.id = n.text WHERE idd = 'x'
-- error: case.sql:2:29: joins are not built yet; join when you read the views
-- error: case.sql:2:70: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: joins by comma
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments, notes
-- error: case.sql:2:24: joins are not built yet; join when you read the views

-- case: temporal joins
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments FOR SYSTEM_TIME AS OF ts
-- error: case.sql:2:25: FOR SYSTEM_TIME AS OF (temporal joins) is not built yet; remove it

-- case: subqueries in WHERE
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments WHERE id IN (SELECT text FROM notes)
-- error: case.sql:2:38: queries within expressions are not supported; a query may stand in FROM, in parentheses, or as WITH name AS (...)

-- case: subqueries in the select list
CREATE MATERIALIZED VIEW v AS
SELECT (SELECT max(text) FROM notes) AS a FROM payments
-- error: case.sql:2:9: queries within expressions are not supported; a query may stand in FROM, in parentheses, or as WITH name AS (...)

-- case: a common table expression without FROM
CREATE MATERIALIZED VIEW v AS
WITH a AS (SELECT 1) SELECT id FROM payments
-- error: case.sql:2:12: FROM is missing; write SELECT ... FROM <stream>

-- case: order and limit
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments ORDER BY id LIMIT 3 OFFSET 1
-- error: case.sql:2:25: ORDER BY is not part of a view, whose rows have no order; write it when you read the view
-- error: case.sql:2:37: LIMIT is not part of a view, whose rows have no order; write it when you read the view
-- error: case.sql:2:45: OFFSET is not part of a view, whose rows have no order; write it when you read the view

-- case: window functions
CREATE MATERIALIZED VIEW v AS
SELECT id, row_number() OVER (PARTITION BY card ORDER BY ts) AS r, sum(items) OVER () AS s FROM payments
-- error: case.sql:2:12: row_number() ranks rows, which is not built yet; rank them when you read the view
-- error: case.sql:2:68: sum() OVER: window functions are not built yet; write GROUP BY, or use OVER when you read the view

-- case: a window clause
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments WINDOW w AS (PARTITION BY id)
-- error: case.sql:2:25: the WINDOW clause is not built yet; write GROUP BY window(<event time>, '1 minute')

-- case: functions that depend on when or where they run
CREATE MATERIALIZED VIEW v AS
SELECT now() AS a, current_timestamp AS b, current_date() AS c, localtimestamp AS d, rand() AS e,
  uuid() AS f, shuffle(tags) AS g, monotonically_increasing_id() AS h, spark_partition_id() AS i,
  input_file_name() AS j, current_user AS k, unix_timestamp() AS l, curdate() AS m, randn(3) AS n,
  random() AS o, `now`() AS p FROM payments
-- error: case.sql:2:8: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:2:20: current_timestamp depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:2:44: current_date depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:2:65: localtimestamp depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:2:86: rand gives another answer every time, so a replay would differ; let the producer put the value into the record
-- error: case.sql:3:3: uuid gives another answer every time, so a replay would differ; let the producer put the value into the record
-- error: case.sql:3:16: shuffle gives another answer every time, so a replay would differ; let the producer put the value into the record
-- error: case.sql:3:36: monotonically_increasing_id depends on where the query runs, not on the log, so a replay would differ; let the producer put the value into the record
-- error: case.sql:3:72: spark_partition_id depends on where the query runs, not on the log, so a replay would differ; let the producer put the value into the record
-- error: case.sql:4:3: input_file_name depends on where the query runs, not on the log, so a replay would differ; let the producer put the value into the record
-- error: case.sql:4:27: current_user depends on where the query runs, not on the log, so a replay would differ; let the producer put the value into the record
-- error: case.sql:4:46: unix_timestamp() depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:4:69: curdate depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:4:85: randn gives another answer every time, so a replay would differ; let the producer put the value into the record
-- error: case.sql:5:3: random gives another answer every time, so a replay would differ; let the producer put the value into the record
-- error: case.sql:5:18: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()

-- case: times that depend on when they are asked
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments WHERE ts > TIMESTAMP 'now' AND date < DATE 'today'
-- error: case.sql:2:36: TIMESTAMP 'now' depends on when it is asked, not on the log; write a fixed time, or use the record's own time
-- error: case.sql:2:63: DATE 'today' depends on when it is asked, not on the log; write a fixed time, or use the record's own time

-- case: watermark()
CREATE MATERIALIZED VIEW v AS
SELECT watermark() AS w FROM payments
-- view: v, 0 us
-- from: payments
-- output: w = _watermark

-- case: outputs without a name
CREATE MATERIALIZED VIEW v AS
SELECT upper(id), id || 'x', 1 FROM payments
-- error: case.sql:2:8: this output has no name; add AS name after upper(id)
-- error: case.sql:2:19: this output has no name; add AS name after id || 'x'
-- error: case.sql:2:30: this output has no name; add AS name after 1

-- case: an aggregate without a name
CREATE MATERIALIZED VIEW v AS
SELECT count(*) FROM payments
-- error: case.sql:2:8: this output has no name; add AS name after count(*)

-- case: an output stands twice
CREATE MATERIALIZED VIEW v AS
SELECT id, card AS ID FROM payments
-- error: case.sql:2:20: output ID occurs twice (names are not case-sensitive); rename one

-- case: a reserved output
CREATE MATERIALIZED VIEW v AS
SELECT id AS _events FROM payments
-- error: case.sql:2:14: output name _events: names that start with _ are reserved; drop the underscore; write AS events

-- case: an output's name as a text
CREATE MATERIALIZED VIEW v AS
SELECT id AS 'x' FROM payments
-- error: case.sql:2:14: an output's name is written without quotes: AS x

-- case: a column that is not grouped
CREATE MATERIALIZED VIEW v AS
SELECT country, card, count(*) AS n FROM payments GROUP BY country
-- error: case.sql:2:17: card is neither grouped nor aggregated; add it to GROUP BY, or write max(card)

-- case: columns that are not grouped, within expressions
CREATE MATERIALIZED VIEW v AS
SELECT upper(country || card) AS a, count(*) + items AS b FROM payments GROUP BY country
-- error: case.sql:2:25: card is neither grouped nor aggregated; add it to GROUP BY, or write max(card)
-- error: case.sql:2:48: items is neither grouped nor aggregated; add it to GROUP BY, or write max(items)

-- case: a column without GROUP BY
CREATE MATERIALIZED VIEW v AS
SELECT card, count(*) AS n FROM payments
-- error: case.sql:2:8: card is neither grouped nor aggregated; add it to GROUP BY, or write max(card)

-- case: aggregates of aggregates
CREATE MATERIALIZED VIEW v AS
SELECT sum(count(*)) AS a FROM payments
-- error: case.sql:2:8: sum() cannot take another aggregate; remove one of the two

-- case: aggregates in WHERE
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM payments WHERE count(*) > 1
-- error: case.sql:2:42: WHERE looks at single records; move the aggregate to HAVING

-- case: aggregates in GROUP BY
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM payments GROUP BY sum(items)
-- error: case.sql:2:45: GROUP BY cannot use an aggregate; group by what it is computed from

-- case: the wrong number of arguments
CREATE MATERIALIZED VIEW v AS
SELECT sum() AS a, count(id, card) AS b, sum(*) AS c FROM payments
-- error: case.sql:2:8: sum() takes exactly one argument
-- error: case.sql:2:20: count() takes exactly one argument
-- error: case.sql:2:42: sum(*) is not allowed; write a column, or count(*)

-- case: a star in a grouped view
CREATE MATERIALIZED VIEW v AS
SELECT *, count(*) AS n FROM payments GROUP BY id
-- error: case.sql:2:8: * cannot stand in a grouped view; name the columns

-- case: a star of another alias
CREATE MATERIALIZED VIEW v AS
SELECT q.* FROM payments p
-- error: case.sql:2:8: q.* names no stream of this view; write p.*

-- case: an ordinal out of range
CREATE MATERIALIZED VIEW v AS
SELECT country, count(*) AS n FROM payments GROUP BY 3
-- error: case.sql:2:54: GROUP BY 3: there are 2 outputs

-- case: an ordinal that is an aggregate
CREATE MATERIALIZED VIEW v AS
SELECT country, count(*) AS n FROM payments GROUP BY 2
-- error: case.sql:2:17: GROUP BY cannot use an aggregate; group by what it is computed from

-- case: a function of the whole window
CREATE MATERIALIZED VIEW v AS
SELECT to_json(window) AS w, count(*) AS n FROM payments GROUP BY window(ts, '1 minute')
-- error: case.sql:2:16: a view's window has a start and an end: window.start, window.end

-- case: window.start without a window
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM payments GROUP BY card
-- error: case.sql:2:8: there is no window here; add GROUP BY window(<event time>, '1 minute')

-- case: lateness without a window
CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '1 minute') AS
SELECT card, count(*) AS n FROM payments GROUP BY card
-- error: case.sql:1:53: allowed_lateness of v: without a window no record is ever late; remove it, or group by window(...)

-- case: lateness that is no duration
CREATE MATERIALIZED VIEW v WITH (allowed_lateness = 'soon') AS
SELECT card FROM payments
-- error: case.sql:1:53: allowed_lateness: 'soon' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'

-- case: options of views that are not built yet or not known
CREATE MATERIALIZED VIEW v WITH (emit = 'changes', retention = '30 days', late = 'drop', mode = 'upsert',
  allowed_latenes = '1 day') AS
SELECT card FROM payments
-- error: case.sql:1:90: CREATE MATERIALIZED VIEW has no option mode; its options are allowed_lateness, late, retention, time_zone, emit, changes
-- error: case.sql:2:3: CREATE MATERIALIZED VIEW has no option allowed_latenes (did you mean allowed_lateness?); its options are allowed_lateness, late, retention, time_zone, emit, changes

-- case: HAVING without groups
CREATE MATERIALIZED VIEW v AS
SELECT card FROM payments HAVING card = 'x'
-- error: case.sql:2:34: HAVING needs GROUP BY or an aggregate; write WHERE

-- case: HAVING on a name that is an output and a column
CREATE MATERIALIZED VIEW v AS
SELECT country, max(items) AS items FROM payments GROUP BY country HAVING items > 3
-- error: case.sql:2:75: items is an output and also a column of payments; name the output differently

-- case: HAVING over what is not grouped
CREATE MATERIALIZED VIEW v AS
SELECT country FROM payments GROUP BY country HAVING card = 'x'
-- error: case.sql:2:54: card is neither grouped nor aggregated; add it to GROUP BY, or write max(card)

-- case: an output used by another
CREATE MATERIALIZED VIEW v AS
SELECT items + 1 AS more, more + 1 AS most FROM payments
-- error: case.sql:2:27: more is an output of the view, not a column of payments; write its expression instead

-- case: no FROM
CREATE MATERIALIZED VIEW v AS
SELECT 1 AS a
-- error: case.sql:2:1: FROM is missing; write SELECT ... FROM <stream>

-- case: nothing selected
CREATE MATERIALIZED VIEW v AS
SELECT FROM payments
-- error: case.sql:2:1: an expression is missing after SELECT; write one

-- case: nothing after WHERE
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments WHERE
-- error: case.sql:2:25: an expression is missing after WHERE; write one

-- case: clauses in the wrong order
CREATE MATERIALIZED VIEW v AS
SELECT country FROM payments GROUP BY country WHERE id = 'x'
-- error: case.sql:2:47: WHERE must stand before GROUP BY

-- case: a clause stands twice
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments WHERE id = 'x' WHERE id = 'y'
-- error: case.sql:2:40: WHERE occurs twice; keep one

-- case: expressions that cannot be read
CREATE MATERIALIZED VIEW v AS
SELECT id + AS a FROM payments WHERE id = = 'x'
-- error: case.sql:2:13: this expression cannot be read near AS; check its syntax
-- error: case.sql:2:43: this expression cannot be read near =; check its syntax

-- case: two commas
CREATE MATERIALIZED VIEW v AS
SELECT id,, card FROM payments
-- error: case.sql:2:1: there is an empty column between two commas

-- case: NULL alone
CREATE MATERIALIZED VIEW v AS
SELECT NULL AS a FROM payments
-- error: case.sql:2:8: NULL alone has no type; write CAST(NULL AS STRING)

-- case: parameters
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments WHERE id = :id
-- error: case.sql:2:31: parameters are not supported; write the value into the definition

-- case: a reserved alias
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments _p
-- error: case.sql:2:25: alias _p is reserved; choose another

-- case: a stream in a schema
CREATE MATERIALIZED VIEW v AS
SELECT id FROM lake.payments
-- error: case.sql:2:20: streams have no catalog or schema; write the stream's name alone

-- case: a table function
CREATE MATERIALIZED VIEW v AS
SELECT id FROM range(10)
-- error: case.sql:2:21: functions in FROM are not supported; write a stream or a query in parentheses

-- case: no AS
CREATE MATERIALIZED VIEW v SELECT id FROM payments
-- error: case.sql:1:28: AS is expected here, not SELECT; write CREATE MATERIALIZED VIEW v AS SELECT ...

-- case: a reserved view
CREATE MATERIALIZED VIEW _v AS SELECT id FROM payments
-- error: case.sql:1:26: view name _v: names that start with _ are reserved; drop the underscore

-- case: problems in several lines
CREATE MATERIALIZED VIEW v AS
SELECT id
  , nosuch AS a
FROM payments
WHERE rand() > 0.5
-- error: case.sql:3:5: payments has no column nosuch; its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen
-- error: case.sql:5:7: rand gives another answer every time, so a replay would differ; let the producer put the value into the record

-- case: a window on a stream with a column named window
CREATE STREAM s (t TIMESTAMP NOT NULL, window STRING, WATERMARK FOR t AS t);
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS w, count(*) AS n FROM s GROUP BY window(t, '1 minute')
-- error: case.sql:3:57: s has a column named window, which hides window.start; rename it

-- case: scripts
CREATE MATERIALIZED VIEW v AS
SELECT TRANSFORM(id) USING 'cat' AS a FROM payments
-- error: case.sql:2:8: only expressions are allowed here, not statements

-- case: expressions that start in the middle
CREATE MATERIALIZED VIEW v AS
SELECT id, ALL card FROM payments WHERE AS id
-- error: case.sql:2:12: an expression cannot start with ALL
-- error: case.sql:2:41: an expression cannot start with AS

-- case: stars and commas within expressions
CREATE MATERIALIZED VIEW v AS
SELECT struct(*) AS a, count(p.*) AS b FROM payments p WHERE id = 1, 2
-- error: case.sql:2:8: * is not allowed within an expression; name the columns
-- error: case.sql:2:30: * is not allowed within an expression; name the columns
-- error: case.sql:2:68: one expression is expected here; remove the comma

-- case: a watermark of what has none, or of too much
CREATE STREAM timeless (a INT);
CREATE STREAM timed (a INT, t TIMESTAMP NOT NULL, WATERMARK FOR t AS t);
CREATE MATERIALIZED VIEW one AS SELECT a FROM timeless WHERE watermark() IS NULL;
CREATE MATERIALIZED VIEW two AS SELECT watermark(a) AS w FROM timed;
CREATE MATERIALIZED VIEW three AS SELECT a, watermark() AS w, count(*) AS n FROM timed GROUP BY a
-- error: case.sql:3:62: watermark() needs the event time of timeless, which has none; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS
-- error: case.sql:4:40: watermark() takes no argument: it is the watermark of the record itself
-- error: case.sql:5:45: watermark() belongs to a single record, and a row has many records; write max(watermark()), or look at _closed when you read the view

-- case: columns of what is joined are no further problem
CREATE MATERIALIZED VIEW v AS
SELECT p.id, n.text, text AS t, m.a FROM payments p JOIN notes n ON p.id = n.text WHERE p.idd = 1
-- error: case.sql:2:33: payments has no column m.a; its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen
-- error: case.sql:2:53: joins are not built yet; join when you read the views
-- error: case.sql:2:91: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: nor are those of a stream that nobody knows
CREATE MATERIALIZED VIEW v AS
SELECT id, name, f.name AS b FROM payments FULL JOIN friends f USING (id)
-- error: case.sql:2:44: joins are not built yet; join when you read the views

-- case: an ordinal of an output that is refused, and one of an output behind it
CREATE MATERIALIZED VIEW v AS
SELECT now() AS a, country, count(*) AS n FROM payments GROUP BY 1, 2, 4
-- error: case.sql:2:8: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:2:72: GROUP BY 4: there are 3 outputs

-- case: a group that cannot be read says nothing about the outputs
CREATE MATERIALIZED VIEW v AS
SELECT country, card FROM payments GROUP BY country, card + , HAVING country = 'x'
-- error: case.sql:2:36: there is an empty column between two commas
-- error: case.sql:2:61: this expression cannot be read near ,; check its syntax

-- case: queries within queries are one problem
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments WHERE id IN (SELECT max(text) FROM (SELECT text FROM notes)) AND EXISTS (SELECT 1)
-- error: case.sql:2:38: queries within expressions are not supported; a query may stand in FROM, in parentheses, or as WITH name AS (...)
-- error: case.sql:2:98: queries within expressions are not supported; a query may stand in FROM, in parentheses, or as WITH name AS (...)

-- case: emission is no clause
CREATE MATERIALIZED VIEW v AS SELECT id FROM payments EMIT CHANGES;
CREATE MATERIALIZED VIEW w AS SELECT id FROM payments WHERE id = 'x' EMIT FINAL
-- error: case.sql:1:55: EMIT CHANGES is what a view does anyway; remove it
-- error: case.sql:2:70: EMIT is no clause here; write it as an option: CREATE MATERIALIZED VIEW name WITH (emit = 'final') AS ...

-- case: clauses that belong to other dialects
CREATE MATERIALIZED VIEW v AS SELECT id FROM payments QUALIFY id = 'x';
CREATE MATERIALIZED VIEW w AS SELECT id FROM payments TABLESAMPLE (10 ROWS) WHERE idd = 'x';
CREATE MATERIALIZED VIEW x AS SELECT id FROM payments PIVOT (sum(items) FOR id IN ('a', 'b'));
CREATE MATERIALIZED VIEW y AS SELECT id FROM payments p (a, b) CLUSTER BY id;
CREATE MATERIALIZED VIEW z AS SELECT id WHERE id = 'x' FROM payments;
CREATE MATERIALIZED VIEW zz AS SELECT id FROM payments) WHERE id = 'x'
-- error: case.sql:1:55: QUALIFY is not built yet; write it when you read the view
-- error: case.sql:2:55: TABLESAMPLE gives another answer every time; use WHERE
-- error: case.sql:2:83: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen
-- error: case.sql:3:55: PIVOT is not built yet; write it when you read the view
-- error: case.sql:4:58: a column list gives names to the columns of a query, and payments has its own; write SELECT a AS b
-- error: case.sql:4:64: CLUSTER BY is not part of a view; remove it
-- error: case.sql:5:56: FROM must follow the columns of SELECT
-- error: case.sql:6:55: this ) closes no bracket; remove it

-- case: FROM that is none
CREATE MATERIALIZED VIEW v AS SELECT id FROM WHERE id = 'x';
CREATE MATERIALIZED VIEW w AS SELECT id FROM 5;
CREATE MATERIALIZED VIEW x AS SELECT id FROM payments p q;
CREATE MATERIALIZED VIEW y AS (SELECT id FROM payments);
CREATE MATERIALIZED VIEW z AS SELECT id FROM payments WHERE id = 'x' JOIN notes
-- error: case.sql:1:41: the name of a stream is missing after FROM; write one
-- error: case.sql:2:46: the name of a stream is expected here, not 5
-- error: case.sql:3:57: this query cannot be read near q; check its syntax
-- error: case.sql:5:70: joins are not built yet; join when you read the views

-- case: every query of a UNION is judged
CREATE MATERIALIZED VIEW v AS
SELECT idd FROM payments UNION SELECT texx FROM notes UNION ALL SELECT 1
-- error: case.sql:2:8: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen
-- error: case.sql:2:26: UNION leaves out equal rows, which is not built yet; write UNION ALL, and GROUP BY over it
-- error: case.sql:2:39: notes has no column texx (did you mean text?); its columns are text
-- error: case.sql:2:65: FROM is missing; write SELECT ... FROM <stream>

-- case: pipes, which would be read as clauses of the SELECT before them
CREATE MATERIALIZED VIEW v AS
SELECT items + 1 AS items FROM payments |> WHERE items > 1
-- error: case.sql:2:41: |> is not supported; write SELECT ... FROM ... WHERE ...

-- case: functions of a catalog
CREATE MATERIALIZED VIEW v AS
SELECT builtin.sum(items) AS n FROM payments
-- error: case.sql:2:16: functions have no catalog or schema; write sum() alone

-- case: nulls that are ignored and respected
CREATE MATERIALIZED VIEW v AS
SELECT first(card IGNORE NULLS) RESPECT NULLS AS c FROM payments
-- error: case.sql:2:33: RESPECT NULLS stands twice; keep one

-- case: forms that no store computes beside an aggregate of windows that overlap
CREATE MATERIALIZED VIEW v AS
SELECT max(items) = ANY (1) AS a, abs(max(items), 2) AS b, nullif(max(items)) AS c,
  max(items) BETWEEN SYMMETRIC 2 AND 1 AS d FROM payments GROUP BY window(ts, '2 hours', '1 hour')
-- error: case.sql:2:8: ANY and ALL cannot stand beside an aggregate of windows that overlap; compute it when you read the view
-- error: case.sql:2:35: abs() takes 1 argument over aggregates of windows that overlap, not 2; compute it when you read the view
-- error: case.sql:2:60: nullif() takes 2 arguments over aggregates of windows that overlap, not 1; compute it when you read the view
-- error: case.sql:3:3: SYMMETRIC is not supported; write BETWEEN low AND high

-- case: a great many joins
CREATE MATERIALIZED VIEW v AS
SELECT card FROM payments JOIN a JOIN b JOIN c JOIN d JOIN e JOIN f JOIN g JOIN h JOIN i JOIN j
-- error: case.sql:2:27: a query of 10 joins is not built yet
