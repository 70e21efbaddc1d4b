-- case: a common table expression that is not read is checked all the same
CREATE MATERIALIZED VIEW v AS WITH a AS (SELECT idd FROM payments) SELECT text FROM notes
-- error: case.sql:1:49: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: the cause alone, where a common table expression is refused
CREATE MATERIALIZED VIEW v AS WITH a AS (SELECT idd AS x FROM payments) SELECT y FROM a
-- error: case.sql:1:49: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: a common table expression does not see itself, nor those behind it
CREATE MATERIALIZED VIEW v AS WITH a AS (SELECT x FROM b), b AS (SELECT x FROM b) SELECT x FROM a
-- error: case.sql:1:56: there is no stream or view b; define it with CREATE STREAM or CREATE VIEW, or correct its name
-- error: case.sql:1:80: there is no stream or view b; define it with CREATE STREAM or CREATE VIEW, or correct its name

-- case: an unknown name near a common table expression
CREATE MATERIALIZED VIEW v AS WITH totals AS (SELECT text FROM notes) SELECT text FROM totls
-- error: case.sql:1:88: there is no stream or view totls (did you mean totals?); define it with CREATE STREAM or CREATE VIEW, or correct its name

-- case: recursion
CREATE MATERIALIZED VIEW v AS WITH RECURSIVE a AS (SELECT text FROM notes) SELECT text FROM a
-- error: case.sql:1:36: recursive queries are not supported; remove RECURSIVE

-- case: two common table expressions of one name
CREATE MATERIALIZED VIEW v AS WITH a AS (SELECT text FROM notes), A AS (SELECT id FROM payments) SELECT text FROM a
-- error: case.sql:1:67: A stands twice in WITH; rename one

-- case: column lists that do not fit
CREATE MATERIALIZED VIEW v AS WITH a (x) AS (SELECT id, card FROM payments) SELECT x FROM a;
CREATE MATERIALIZED VIEW w AS SELECT x FROM (SELECT id, card FROM payments) t (x, X);
CREATE MATERIALIZED VIEW u AS SELECT x FROM payments AS t (x, y)
-- error: case.sql:1:39: a has 2 columns, and the list names 1; write one name for each
-- error: case.sql:2:83: column X occurs twice (names are not case-sensitive); rename one
-- error: case.sql:3:60: a column list gives names to the columns of a query, and payments has its own; write SELECT a AS b

-- case: unknown columns of a subquery
CREATE MATERIALIZED VIEW v AS SELECT id FROM (SELECT id AS x, card FROM payments) AS t;
CREATE MATERIALIZED VIEW w AS SELECT cart FROM (SELECT id, card FROM payments)
-- error: case.sql:1:38: t has no column id; its columns are x, card
-- error: case.sql:2:38: the subquery has no column cart (did you mean card?); its columns are id, card

-- case: two columns of one name in a subquery
CREATE MATERIALIZED VIEW v AS SELECT x FROM (SELECT id AS x, card AS X FROM payments)
-- error: case.sql:1:70: output X occurs twice (names are not case-sensitive); rename one

-- case: windows over a subquery without the event time
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM (SELECT id, ts + INTERVAL 1 HOUR AS ts FROM payments) p GROUP BY window(ts, '1 hour')
-- error: case.sql:2:111: window() needs the event time of p, which has none; select ts in it as it is

-- case: windows over a subquery of a stream without an event time
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n FROM (SELECT text FROM notes) p GROUP BY window(text, '1 hour')
-- error: case.sql:2:82: window() needs the event time of p, which has none; add to the columns of notes: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS

-- case: windows over a union whose event times stand in different places
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, count(*) AS n
FROM (SELECT ts, seen FROM payments UNION ALL SELECT seen, ts FROM payments) p GROUP BY window(ts, '1 hour')
-- error: case.sql:3:89: window() needs the event time of p, which has none; select the event time of every query of UNION ALL, as it is, in the same place

-- case: watermark() over groups
CREATE MATERIALIZED VIEW v AS
SELECT watermark() AS w FROM (SELECT id, count(*) AS n FROM payments GROUP BY id)
-- error: case.sql:2:8: watermark() needs the event time of the subquery, which has none; its rows are groups, not records

-- case: union all of different numbers of columns
CREATE MATERIALIZED VIEW v AS
SELECT id, card FROM payments
UNION ALL SELECT text FROM notes
UNION ALL SELECT id, card FROM payments
-- error: case.sql:3:11: this query of UNION ALL has 1 column, and the first has 2; select as many in each

-- case: UNION and its kin
CREATE MATERIALIZED VIEW a AS SELECT text FROM notes UNION SELECT id FROM payments;
CREATE MATERIALIZED VIEW b AS SELECT text FROM notes UNION DISTINCT SELECT id FROM payments;
CREATE MATERIALIZED VIEW c AS SELECT text FROM notes EXCEPT SELECT id FROM payments;
CREATE MATERIALIZED VIEW d AS SELECT text FROM notes INTERSECT SELECT id FROM payments;
CREATE MATERIALIZED VIEW e AS SELECT text FROM notes UNION ALL BY NAME SELECT id FROM payments;
CREATE MATERIALIZED VIEW f AS SELECT text FROM notes UNION ALL SELECT id FROM payments ORDER BY 1 LIMIT 3;
CREATE MATERIALIZED VIEW g AS (SELECT text FROM notes) MINUS (SELECT idd FROM payments)
-- error: case.sql:1:54: UNION leaves out equal rows, which is not built yet; write UNION ALL, and GROUP BY over it
-- error: case.sql:2:54: UNION leaves out equal rows, which is not built yet; write UNION ALL, and GROUP BY over it
-- error: case.sql:3:54: EXCEPT is not built yet; make a view of each query, and compare them when you read
-- error: case.sql:4:54: INTERSECT is not built yet; make a view of each query, and compare them when you read
-- error: case.sql:5:54: UNION BY NAME is not supported; select the columns in the same order
-- error: case.sql:6:88: ORDER BY is not part of a view, whose rows have no order; write it when you read the view
-- error: case.sql:6:99: LIMIT is not part of a view, whose rows have no order; write it when you read the view
-- error: case.sql:7:56: MINUS is not built yet; make a view of each query, and compare them when you read
-- error: case.sql:7:70: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: problems in every query of UNION ALL
CREATE MATERIALIZED VIEW v AS SELECT texd FROM notes UNION ALL SELECT idd FROM payments
-- error: case.sql:1:38: notes has no column texd (did you mean text?); its columns are text
-- error: case.sql:1:71: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: an aggregate over an aggregate
CREATE MATERIALIZED VIEW v AS
SELECT max(n) AS m FROM (SELECT id, count(*) AS n FROM payments GROUP BY id) AS g;
CREATE MATERIALIZED VIEW w AS
WITH g AS (SELECT id, card, count(*) AS n FROM payments GROUP BY id, card) SELECT card FROM g GROUP BY card
-- error: case.sql:2:8: an aggregate over groups is not built yet: g is grouped already; group once, over its records, or work it out when you read the view
-- error: case.sql:4:95: an aggregate over groups is not built yet: g is grouped already; group once, over its records, or work it out when you read the view

-- case: union all of groups
CREATE MATERIALIZED VIEW v AS
SELECT id, count(*) AS n FROM payments GROUP BY id UNION ALL SELECT text, 1 AS one FROM notes
-- error: case.sql:2:1: UNION ALL of grouped queries is not built yet; combine the records first, then group them: SELECT ... FROM (SELECT ... UNION ALL SELECT ...) GROUP BY ...

-- case: what stands over groups obeys the rules of one SELECT
CREATE MATERIALIZED VIEW v AS
SELECT k, soundex(CAST(c AS STRING)) AS h FROM (SELECT Country AS k, count(*) AS c FROM payments GROUP BY Country, window(ts, '2 hours', '1 hour'));
CREATE MATERIALIZED VIEW w AS
SELECT soundex(CAST(s AS STRING)) AS later FROM (SELECT window.start AS s, count(*) AS c FROM payments GROUP BY window(ts, '2 hours', '1 hour'))
-- error: case.sql:2:11: soundex() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT soundex(...) FROM view, or apply it to the argument
-- error: case.sql:4:8: soundex() cannot be applied to an edge of windows that overlap; compute it when you read: SELECT soundex(...) FROM view

-- case: other things in FROM
CREATE MATERIALIZED VIEW a AS SELECT x FROM VALUES (1) AS t (x);
CREATE MATERIALIZED VIEW b AS SELECT x FROM (VALUES (1)) AS t (x);
CREATE MATERIALIZED VIEW c AS SELECT x FROM range(10);
CREATE MATERIALIZED VIEW d AS SELECT x FROM LATERAL (SELECT 1 AS x);
CREATE MATERIALIZED VIEW e AS SELECT x FROM db.notes
-- error: case.sql:1:45: VALUES cannot stand in FROM; write a stream or a query in parentheses
-- error: case.sql:2:45: VALUES cannot stand in FROM; write a stream or a query in parentheses
-- error: case.sql:3:50: functions in FROM are not supported; write a stream or a query in parentheses
-- error: case.sql:4:45: LATERAL cannot stand in FROM; write a stream or a query in parentheses
-- error: case.sql:5:47: streams have no catalog or schema; write the stream's name alone

-- case: a query in an expression
CREATE MATERIALIZED VIEW v AS SELECT id FROM (SELECT id FROM payments WHERE id IN (SELECT text FROM notes))
-- error: case.sql:1:84: queries within expressions are not supported; a query may stand in FROM, in parentheses, or as WITH name AS (...)

-- case: joins, with subqueries and without
CREATE MATERIALIZED VIEW v AS SELECT a.id, b.what FROM payments a JOIN (SELECT text AS what FROM notes) b ON a.id = b.what;
CREATE MATERIALIZED VIEW w AS SELECT x, y FROM (SELECT id AS x FROM payments p JOIN notes n ON p.id = n.text) a
-- error: case.sql:1:67: joins are not built yet; join when you read the views
-- error: case.sql:2:80: joins are not built yet; join when you read the views
