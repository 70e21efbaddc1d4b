-- case: a view is a name for a query, in any order
CREATE MATERIALIZED VIEW per_country AS SELECT Country, count(*) AS n FROM big GROUP BY Country;
CREATE VIEW big AS SELECT * FROM small_enough WHERE amount > 10;
CREATE VIEW small_enough AS SELECT Country, amount FROM payments WHERE amount < 1000
-- query: view big reads small_enough
-- from: payments
-- where: amount < 1000
-- output: Country = Country
-- output: amount = amount
-- where: amount > 10
-- output: Country = Country
-- output: amount = amount
-- query: view small_enough reads payments
-- from: payments
-- where: amount < 1000
-- output: Country = Country
-- output: amount = amount
-- view: per_country, 0 us
-- from: payments
-- where: amount < 1000
-- output: Country = Country
-- output: amount = amount
-- where: amount > 10
-- output: Country = Country
-- output: amount = amount
-- window: none
-- key: key_0 = Country
-- call: call_0 = count()
-- output: Country = key_0
-- output: n = call_0

-- case: a stream that is a query, and one that nothing reads
CREATE STREAM loud AS SELECT upper(text) AS text FROM notes;
CREATE STREAM both AS SELECT text FROM loud UNION ALL SELECT text FROM notes;
CREATE MATERIALIZED VIEW v AS SELECT text FROM loud
-- query: stream loud reads notes
-- from: notes
-- output: text = upper(text)
-- query: stream both reads loud, notes
-- branch: 0
-- from: notes
-- output: text = upper(text)
-- output: text = text
-- branch: 1
-- from: notes
-- output: text = text
-- union: of 2
-- view: v, 0 us
-- from: notes
-- output: text = upper(text)
-- output: text = text

-- case: a view of groups, read by a materialized view
CREATE VIEW counts (what, n) AS SELECT text, count(*) AS many FROM notes GROUP BY text;
CREATE MATERIALIZED VIEW often AS SELECT what FROM counts AS c WHERE c.n > 3
-- query: view counts reads notes
-- from: notes
-- window: none
-- key: key_0 = text
-- call: call_0 = count()
-- output: what = key_0
-- output: n = call_0
-- view: often, 0 us
-- from: notes
-- window: none
-- key: key_0 = text
-- call: call_0 = count()
-- output: what = key_0
-- output: n = call_0
-- where: n > 3
-- output: what = what

-- case: OR REPLACE means the same
CREATE OR REPLACE STREAM s (x INT);
CREATE OR REPLACE STREAM t AS SELECT x + 1 AS y FROM s;
CREATE OR REPLACE VIEW w AS SELECT y FROM t;
CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT y FROM w;
CREATE OR REPLACE SINK k FROM v WITH (topic = 'k')
-- stream: s (x INT) from s, key None, timestamps None
-- query: stream t reads s
-- from: s
-- output: y = x + 1
-- query: view w reads t
-- from: s
-- output: y = x + 1
-- output: y = y
-- view: v, 0 us
-- from: s
-- output: y = x + 1
-- output: y = y
-- output: y = y
-- sink: k of v to k, upsert
