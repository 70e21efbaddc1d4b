-- case: DISTINCT over groups that may be equal
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT count(*) AS n FROM orders GROUP BY shop
-- error: case.sql:2:8: DISTINCT over groups would have to compare their rows, which change; select all that GROUP BY names as it is, and remove DISTINCT

-- case: DISTINCT over windows without their start
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT shop FROM orders GROUP BY window(ts, '1 minute'), shop
-- error: case.sql:2:8: DISTINCT over groups would have to compare their rows, which change; select all that GROUP BY names as it is, and remove DISTINCT

-- case: DISTINCT ON
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT ON (shop) shop, id FROM orders
-- error: case.sql:2:8: DISTINCT ON is not supported; write GROUP BY, and first(x) of the rest

-- case: EXCEPT of a column that is not there
CREATE MATERIALIZED VIEW v AS
SELECT * EXCEPT (pricess) FROM orders
-- error: case.sql:2:18: EXCEPT pricess: there is no such column (did you mean prices?)

-- case: EXCEPT of a field
CREATE MATERIALIZED VIEW v AS
SELECT * EXCEPT (buyer.name) FROM orders
-- error: case.sql:2:18: EXCEPT takes the names of columns, without dots

-- case: EXCEPT of all columns
CREATE MATERIALIZED VIEW v AS
SELECT * EXCEPT (text) FROM notes
-- error: case.sql:2:8: EXCEPT leaves no column; name those to keep

-- case: a star with a name
CREATE MATERIALIZED VIEW v AS
SELECT * AS x FROM orders
-- error: case.sql:2:13: * stands for several columns and has no name; remove AS

-- case: a star with replacements
CREATE MATERIALIZED VIEW v AS
SELECT * REPLACE (upper(id) AS id) FROM orders
-- error: case.sql:2:10: * REPLACE is not supported; write * EXCEPT (...), and the columns

-- case: the fields of what is no struct
CREATE MATERIALIZED VIEW v AS
SELECT tags.* FROM orders
-- error: case.sql:2:8: tags is ARRAY<STRING>, not a STRUCT; name what to select of it

-- case: the fields of a column that is not there
CREATE MATERIALIZED VIEW v AS
SELECT buier.* FROM orders
-- error: case.sql:2:8: buier.* names no stream of this view (did you mean buyer?); write orders.*

-- case: a record's own column without a name
CREATE MATERIALIZED VIEW v AS
SELECT _offset FROM orders
-- error: case.sql:2:8: an output cannot be called _offset, which is a record's own; write _offset AS offset

-- case: a record's own column where there is none of that name
CREATE MATERIALIZED VIEW v AS
SELECT _ofset AS o FROM orders
-- error: case.sql:2:8: orders has no column _ofset (did you mean _offset?); its columns are id, shop, tags, prices, lines, buyer, body, ts

-- case: the fields of a struct with the same names
CREATE MATERIALIZED VIEW v AS
SELECT buyer.*, buyer.* FROM orders
-- error: case.sql:2:17: output Name occurs twice (names are not case-sensitive); rename one
-- error: case.sql:2:17: output home occurs twice (names are not case-sensitive); rename one
