-- case: a circle of definitions names its members in order
CREATE VIEW a AS SELECT x FROM b;
CREATE VIEW b AS SELECT x FROM c UNION ALL SELECT text FROM notes;
CREATE STREAM c AS SELECT x FROM a;
CREATE MATERIALIZED VIEW v AS SELECT y FROM b
-- error: case.sql:1:13: definitions cannot form a cycle: a reads b, b reads c, c reads a; let one of them read a stream instead

-- case: a definition that reads itself
CREATE VIEW a AS SELECT x FROM a
-- error: case.sql:1:13: a definition cannot read itself: a reads a; let one of them read a stream instead

-- case: two circles
CREATE VIEW a AS SELECT x FROM b;
CREATE VIEW b AS SELECT x FROM a;
CREATE VIEW c AS SELECT x FROM d;
CREATE VIEW d AS SELECT x FROM c JOIN a ON c.x = a.x
-- error: case.sql:1:13: definitions cannot form a cycle: a reads b, b reads a; let one of them read a stream instead
-- error: case.sql:3:13: definitions cannot form a cycle: c reads d, d reads c; let one of them read a stream instead

-- case: two definitions of one name
CREATE VIEW notes AS SELECT id FROM payments;
CREATE VIEW w AS SELECT id FROM payments;
CREATE MATERIALIZED VIEW w AS SELECT id FROM payments
-- error: case.sql:1:1: notes is defined at streams.sql:8:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one
-- error: case.sql:3:1: w is defined at case.sql:2:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one

-- case: a definition that was refused does not make its readers look wrong
CREATE VIEW a AS SELECT idd AS x FROM payments;
CREATE VIEW b AS SELECT x, y FROM a;
CREATE MATERIALIZED VIEW v AS SELECT z FROM b;
CREATE SINK s FROM v WITH (topic = 's')
-- error: case.sql:1:25: payments has no column idd (did you mean id?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen

-- case: a refused table does not make its readers look wrong
CREATE TABLE cards (card STRING PRIMARY KEY, holder STRING);
CREATE TABLE rich AS SELECT holder FROM cards;
CREATE MATERIALIZED VIEW v AS SELECT holder FROM cards UNION ALL SELECT holder FROM rich
-- error: case.sql:2:8: a table that a query keeps up to date is a view; write CREATE MATERIALIZED VIEW rich AS SELECT ...
-- error: case.sql:3:50: cards is a table, and views over tables are not built yet; read its rows with `headrace sql`, by HTTP or with a sink

-- case: a definition that is not there
CREATE VIEW a AS SELECT x FROM gone;
CREATE MATERIALIZED VIEW v AS SELECT x FROM gone;
CREATE VIEW gane AS SELECT text AS x FROM notes
-- error: case.sql:1:32: there is no stream or view gone (did you mean gane?); define it with CREATE STREAM or CREATE VIEW, or correct its name; 2 definitions read it: a, v
-- error: case.sql:2:45: there is no stream or view gone (did you mean gane?); define it with CREATE STREAM or CREATE VIEW, or correct its name; 2 definitions read it: a, v

-- case: a materialized view over a materialized view, and over a sink
CREATE MATERIALIZED VIEW v AS SELECT text FROM notes;
CREATE MATERIALIZED VIEW w AS SELECT text FROM v;
CREATE SINK s FROM v WITH (topic = 's');
CREATE VIEW u AS SELECT text FROM s
-- error: case.sql:2:48: v is a materialized view, and views over views are not built yet; write its query as CREATE VIEW or CREATE STREAM ... AS, which others can read, or read the streams that v reads
-- error: case.sql:4:35: s is a sink, which only writes; read what v reads

-- case: a stream of groups
CREATE STREAM s AS SELECT text, count(*) AS n FROM notes GROUP BY text
-- error: case.sql:1:15: s is grouped, and the rows of a stream are records, not groups; write CREATE MATERIALIZED VIEW, or CREATE VIEW for a name alone

-- case: options where there are none
CREATE VIEW v WITH (topic = 'loud') AS SELECT upper(text) AS text FROM notes;
CREATE STREAM s WITH (format = 'json') AS SELECT upper(text) AS text FROM notes;
CREATE STREAM t WITH (topic = 't')
-- error: case.sql:1:15: CREATE VIEW is a name for a query and has no options; write CREATE VIEW v AS SELECT ...
-- error: case.sql:2:23: CREATE STREAM ... AS has no option format; its options are topic, key, rewrite
-- error: case.sql:3:17: stream t has no columns; write CREATE STREAM t (column TYPE, ...) WITH (...)

-- case: sinks of what has no rows of its own
CREATE VIEW v AS SELECT text FROM notes;
CREATE SINK s FROM v WITH (topic = 's')
-- error: case.sql:2:1: sink s is fed by v, which is a name for a query and has no rows of its own; write CREATE MATERIALIZED VIEW name AS SELECT * FROM v, and the sink FROM that

-- case: reserved and unfit names
CREATE VIEW _v AS SELECT text FROM notes;
CREATE STREAM headrace_s AS SELECT text FROM notes;
CREATE VIEW v (a, b) AS SELECT text FROM notes;
CREATE VIEW w ('a') AS SELECT text FROM notes
-- error: case.sql:1:13: view name _v: names that start with _ are reserved; drop the underscore
-- error: case.sql:2:15: stream name headrace_s: names that start with headrace are reserved; choose another
-- error: case.sql:3:16: v has 1 column, and the list names 2; write one name for each
-- error: case.sql:4:16: only names are allowed here, one for each column of the query; write CREATE VIEW w AS SELECT ...

-- case: no query
CREATE VIEW v;
CREATE VIEW w AS;
CREATE VIEW u AS INSERT INTO notes VALUES (1);
CREATE VIEW t SELECT text FROM notes
-- error: case.sql:1:13: AS is expected here, but the statement ends; write CREATE VIEW v AS SELECT ...
-- error: case.sql:2:15: SELECT is expected here, but the statement ends; write CREATE VIEW w AS SELECT ...
-- error: case.sql:3:18: SELECT is expected here, not INSERT; write CREATE VIEW u AS SELECT ...
-- error: case.sql:4:15: AS is expected here, not SELECT; write CREATE VIEW t AS SELECT ...
