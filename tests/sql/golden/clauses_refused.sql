-- case: EMIT of other engines
CREATE MATERIALIZED VIEW a AS SELECT id FROM payments EMIT CHANGES;
CREATE MATERIALIZED VIEW b AS SELECT id, count(*) AS n FROM payments GROUP BY id EMIT FINAL;
CREATE MATERIALIZED VIEW c AS SELECT id FROM (SELECT id FROM payments WHERE id <> '' EMIT CHANGES);
CREATE VIEW d AS SELECT id FROM payments WHERE amount > 1 EMIT CHANGES LIMIT 3
-- error: case.sql:1:55: EMIT CHANGES is what a view does anyway; remove it
-- error: case.sql:2:82: EMIT is no clause here; write it as an option: CREATE MATERIALIZED VIEW name WITH (emit = 'final') AS ...
-- error: case.sql:3:86: EMIT CHANGES is what a view does anyway; remove it
-- error: case.sql:4:59: EMIT CHANGES is what a view does anyway; remove it

-- case: PARTITION BY of a stream
CREATE STREAM a AS SELECT id FROM payments PARTITION BY id;
CREATE STREAM b AS SELECT id FROM payments WHERE id <> '' PARTITION BY card EMIT CHANGES
-- error: case.sql:1:44: PARTITION BY is not needed: GROUP BY brings equal values together from all partitions; remove it. What a stream writes to a topic gets another key by WITH (topic = '...', key = '<column>')
-- error: case.sql:2:59: PARTITION BY is not needed: GROUP BY brings equal values together from all partitions; remove it. What a stream writes to a topic gets another key by WITH (topic = '...', key = '<column>')

-- case: windows of other engines
CREATE MATERIALIZED VIEW a AS SELECT id, count(*) AS n FROM payments WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY id;
CREATE MATERIALIZED VIEW b AS SELECT id, count(*) AS n FROM payments WINDOW SESSION (5 MINUTES) GROUP BY id
-- error: case.sql:1:77: the TUMBLING window is written in GROUP BY: GROUP BY window(<event time>, '1 minute')
-- error: case.sql:2:77: the SESSION window is written in GROUP BY: GROUP BY session_window(<event time>, '5 minutes')

-- case: statements of other engines
CREATE TABLE totals AS SELECT id, count(*) AS n FROM payments GROUP BY id EMIT CHANGES;
CREATE SOURCE TABLE cards (card STRING) WITH (topic = 'cards');
INSERT INTO notes SELECT id FROM payments;
CREATE TEMPORARY VIEW t AS SELECT text FROM notes;
CREATE MATERIALIZED VIEW v AS SELECT x FROM totals UNION ALL SELECT y FROM cards UNION ALL SELECT z FROM t
-- error: case.sql:1:8: a table that a query keeps up to date is a view; write CREATE MATERIALIZED VIEW totals AS SELECT ...
-- error: case.sql:2:8: CREATE SOURCE is written CREATE STREAM name (column TYPE, ...) WITH (topic = '...')
-- error: case.sql:3:1: INSERT is not a definition; append records, or rows of a table, with `headrace append`, and write a query that feeds a stream as CREATE STREAM name AS SELECT ...
-- error: case.sql:4:8: temporary definitions are not supported; remove TEMPORARY
