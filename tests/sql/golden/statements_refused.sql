-- case: other statements
DROP STREAM a;
ALTER TABLE a ADD b;
INSERT INTO a VALUES (1);
SELECT 1;
WITH a AS (SELECT 1) SELECT 2;
EXPLAIN x;
SET a = 1
-- error: case.sql:1:1: DROP is not a definition; delete the statement that creates it
-- error: case.sql:2:1: ALTER is not a definition; edit the statement that creates it
-- error: case.sql:3:1: INSERT is not a definition; append records, or rows of a table, with `headrace append`, and write a query that feeds a stream as CREATE STREAM name AS SELECT ...
-- error: case.sql:4:1: a query by itself is not a definition; run it with `headrace sql`, or write CREATE MATERIALIZED VIEW name AS before it
-- error: case.sql:5:1: a query by itself is not a definition; run it with `headrace sql`, or write CREATE MATERIALIZED VIEW name AS before it
-- error: case.sql:6:1: this is not a definition; write CREATE STREAM ..., CREATE TABLE ..., CREATE VIEW ... AS SELECT ..., CREATE MATERIALIZED VIEW ... AS SELECT ... or CREATE SINK ...
-- error: case.sql:7:1: SET is not a definition; write settings in headrace.toml

-- case: tables, sinks and plain views
CREATE TABLE cards (card STRING PRIMARY KEY);
CREATE SINK s FROM v WITH (topic = 's');
CREATE VIEW v AS SELECT 1;
CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1;
CREATE INDEX i;
CREATE STREAM IF NOT EXISTS a (x INT)
-- error: case.sql:3:18: FROM is missing; write SELECT ... FROM <stream>
-- error: case.sql:4:42: FROM is missing; write SELECT ... FROM <stream>
-- error: case.sql:5:8: CREATE INDEX is not known; write CREATE STREAM ..., CREATE TABLE ..., CREATE VIEW ... AS SELECT ..., CREATE MATERIALIZED VIEW ... AS SELECT ... or CREATE SINK ...
-- error: case.sql:6:15: IF NOT EXISTS is not needed; remove it

-- case: nothing after CREATE
CREATE
-- error: case.sql:1:1: CREATE alone is not known; write CREATE STREAM ..., CREATE TABLE ..., CREATE VIEW ... AS SELECT ..., CREATE MATERIALIZED VIEW ... AS SELECT ... or CREATE SINK ...

-- case: a quote without an end
CREATE STREAM a (x INT) WITH (topic = 'a)
-- error: case.sql:1:39: the quote or comment that begins here is never closed

-- case: a comment without an end
CREATE STREAM a (x INT); /* CREATE
-- error: case.sql:1:26: the quote or comment that begins here is never closed

-- case: a statement after the statement
CREATE STREAM a (x INT) CREATE STREAM b (x INT)
-- error: case.sql:1:25: the statement should end here, not CREATE; write ; between statements
