-- oracle: spark
CREATE MATERIALIZED VIEW types_within_types AS
SELECT id, CAST(array(qty) AS ARRAY<NUMERIC(10,2)>) AS a, CAST(qty AS DEC(10,2)) AS b,
  CAST(map('x', qty) AS MAP<STRING, NUMERIC(10,2)>) AS c, CAST(id AS CHARACTER(9)) AS d,
  CAST(named_struct('x', id) AS STRUCT<x: VARCHAR(9)>) AS e, qty::NUMERIC(9, 1) AS f FROM orders;
