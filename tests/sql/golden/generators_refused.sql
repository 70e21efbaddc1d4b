-- case: within an expression
CREATE MATERIALIZED VIEW v AS
SELECT upper(explode(tags)) AS t FROM orders
-- error: case.sql:2:14: explode() makes several rows of one, and cannot stand within an expression; write FROM ... LATERAL VIEW explode(x) t AS c, and use c here

-- case: in WHERE
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE explode(tags) = 'a'
-- error: case.sql:2:29: explode() makes several rows of one, and cannot stand within an expression; write FROM ... LATERAL VIEW explode(x) t AS c, and use c here

-- case: two in one select list
CREATE MATERIALIZED VIEW v AS
SELECT explode(tags) AS a, explode(tags) AS b FROM orders
-- error: case.sql:2:28: a SELECT has one generator; write this one as FROM ... LATERAL VIEW explode(tags) t AS c, and select c

-- case: in a grouped SELECT
CREATE MATERIALIZED VIEW v AS
SELECT explode(tags) AS a, count(*) AS n FROM orders GROUP BY a
-- error: case.sql:2:8: explode() cannot stand in a grouped SELECT; write FROM ... LATERAL VIEW explode(tags) t AS c, and use c

-- case: over an aggregate
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders LATERAL VIEW explode(collect_list(id)) t AS c
-- error: case.sql:2:44: explode() is over single records; take the aggregate apart when you read

-- case: of what is neither array nor map
CREATE MATERIALIZED VIEW v AS
SELECT explode(id) AS b FROM orders
-- error: case.sql:2:16: explode() takes an ARRAY or a MAP, and id is STRING

-- case: inline of texts
CREATE MATERIALIZED VIEW v AS
SELECT inline(tags) FROM orders
-- error: case.sql:2:15: inline() takes an ARRAY of STRUCT, and tags is ARRAY<STRING>

-- case: too few names
CREATE MATERIALIZED VIEW v AS
SELECT explode(prices) AS p FROM orders
-- error: case.sql:2:8: explode() makes 2 columns, and has 1 name; write explode(...) AS (key, value), or LATERAL VIEW explode(...) t AS key, value

-- case: too many names
CREATE MATERIALIZED VIEW v AS
SELECT t.a FROM orders LATERAL VIEW explode(tags) t AS a, b
-- error: case.sql:2:37: explode() makes one column, and has 2 names; write explode(...) AS col, or LATERAL VIEW explode(...) t AS col

-- case: no names where none is known
CREATE MATERIALIZED VIEW v AS
SELECT inline(from_json(body, 'array<struct<a: int>>')) FROM orders
-- error: case.sql:2:8: inline() makes several columns, and has no names; write inline(...) AS (a, b), or LATERAL VIEW inline(...) t AS a, b

-- case: no name of an element
CREATE MATERIALIZED VIEW v AS
SELECT explode(split(id, ',')) FROM orders
-- error: case.sql:2:8: explode() makes one column, and has no names; write explode(...) AS c, or LATERAL VIEW explode(...) t AS c

-- case: a name twice
CREATE MATERIALIZED VIEW v AS
SELECT posexplode(tags) AS (a, A) FROM orders
-- error: case.sql:2:29: a names two columns of posexplode(); rename one

-- case: a reserved name
CREATE MATERIALIZED VIEW v AS
SELECT posexplode(tags) AS (_a, b) FROM orders
-- error: case.sql:2:29: column name _a: names that start with _ are reserved; drop the underscore

-- case: a name of two columns
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders LATERAL VIEW explode(tags) t AS id
-- error: case.sql:2:8: id is the name of 2 columns; write orders.id or t.id

-- case: a star with a name of two columns
CREATE MATERIALIZED VIEW v AS
SELECT * FROM orders LATERAL VIEW explode(tags) t AS id
-- error: case.sql:2:8: * stands for orders.id and t.id, which have one name; name the columns, with AS

-- case: an alias of two relations
CREATE MATERIALIZED VIEW v AS
SELECT k FROM orders LATERAL VIEW explode(tags) orders AS k
-- error: case.sql:2:49: alias orders stands for two relations; choose another

-- case: a column that a lateral view has not
CREATE MATERIALIZED VIEW v AS
SELECT t.tags FROM orders LATERAL VIEW explode(tags) t AS tag
-- error: case.sql:2:10: t has no column tags (did you mean tag?); its columns are tag

-- case: a lateral view over a later one
CREATE MATERIALIZED VIEW v AS
SELECT 1 AS one FROM orders LATERAL VIEW explode(split(tag, '')) a AS c LATERAL VIEW explode(tags) t AS tag
-- error: case.sql:2:56: orders has no column tag (did you mean tags?); its columns are id, shop, tags, prices, lines, buyer, body, ts

-- case: no argument
CREATE MATERIALIZED VIEW v AS
SELECT explode() AS a FROM orders
-- error: case.sql:2:8: explode() takes one array or map, such as explode(items)

-- case: other generators
CREATE MATERIALIZED VIEW v AS
SELECT stack(2, 1, 2) AS a, json_tuple(body, 'a') AS b FROM orders
-- error: case.sql:2:8: stack() is not supported; write LATERAL VIEW inline(array(struct(a, b), struct(c, d))) t AS x, y
-- error: case.sql:2:29: json_tuple() is not supported; write get_json_object once for each name, with its path, such as '$.name'

-- case: other functions after LATERAL VIEW
CREATE MATERIALIZED VIEW v AS
SELECT k FROM orders LATERAL VIEW upper(id) s AS k
-- error: case.sql:2:35: only explode, posexplode and inline, with or without _outer, make rows here; write LATERAL VIEW explode(x) t AS c

-- case: other generators after LATERAL VIEW
CREATE MATERIALIZED VIEW v AS
SELECT k FROM orders LATERAL VIEW json_tuple(body, 'a') s AS k
-- error: case.sql:2:35: json_tuple() is not supported; write get_json_object once for each name, with its path, such as '$.name'

-- case: WITH ORDINALITY
CREATE MATERIALIZED VIEW v AS
SELECT tag FROM orders CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t(tag, i)
-- error: case.sql:2:48: WITH ORDINALITY is not supported; write LATERAL VIEW posexplode(x) t AS pos, value, which counts from 0

-- case: RIGHT JOIN
CREATE MATERIALIZED VIEW v AS
SELECT tag FROM orders RIGHT JOIN LATERAL explode(tags) AS t(tag) ON TRUE
-- error: case.sql:2:24: elements are joined with CROSS JOIN or LEFT JOIN; write one of these

-- case: a condition of ON
CREATE MATERIALIZED VIEW v AS
SELECT tag FROM orders LEFT JOIN LATERAL explode(tags) AS t(tag) ON tag = 'a'
-- error: case.sql:2:69: elements belong to their own row: write ON TRUE, and conditions in WHERE

-- case: over groups
CREATE MATERIALIZED VIEW v AS
SELECT explode(l) AS x FROM (SELECT collect_list(id) AS l FROM orders)
-- error: case.sql:2:8: a generator over groups is not built yet: the subquery is grouped already; group once, over its records, or work it out when you read the view

-- case: distinct rows of groups
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT n FROM (SELECT shop, count(*) AS n FROM orders GROUP BY shop)
-- error: case.sql:2:1: an aggregate over groups is not built yet: the subquery is grouped already; group once, over its records, or work it out when you read the view
