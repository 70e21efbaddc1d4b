CREATE STREAM a (x INT) AS SELECT id FROM orders;
CREATE STREAM b (x, y) AS SELECT id FROM orders;
CREATE MATERIALIZED VIEW c (x INT) AS SELECT id FROM orders;
CREATE MATERIALIZED VIEW d (x, x) AS SELECT id, qty FROM orders;
CREATE MATERIALIZED VIEW e (x) AS SELECT id, qty FROM orders;
-- error: 1:18: only names are allowed here, one for each column of the query; write CREATE STREAM a AS SELECT ...
-- error: 2:18: b has 1 column, and the list names 2; write one name for each
-- error: 3:29: only names are allowed here, one for each column of the query; write CREATE MATERIALIZED VIEW c AS SELECT ...
-- error: 4:32: column x occurs twice (names are not case-sensitive); rename one
-- error: 5:29: e has 2 columns, and the list names 1; write one name for each
