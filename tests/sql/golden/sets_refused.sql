-- case: grouping() without sets
CREATE MATERIALIZED VIEW v AS
SELECT grouping(shop) AS g, count(*) AS n FROM orders GROUP BY shop
-- error: case.sql:2:8: grouping() tells which columns a grouping set leaves out, and there is none; write GROUP BY ROLLUP (a, b), CUBE (a, b) or GROUPING SETS ((a, b), (a), ())

-- case: grouping_id() without groups
CREATE MATERIALIZED VIEW v AS
SELECT grouping_id() AS g FROM orders
-- error: case.sql:2:8: grouping_id() tells which columns a grouping set leaves out, and there is none; write GROUP BY ROLLUP (a, b), CUBE (a, b) or GROUPING SETS ((a, b), (a), ())

-- case: grouping() of what is no key
CREATE MATERIALIZED VIEW v AS
SELECT grouping(id) AS g, count(*) AS n FROM orders GROUP BY CUBE (shop)
-- error: case.sql:2:8: grouping() takes one of the columns that GROUP BY names; write grouping(a)

-- case: grouping_id() of some columns
CREATE MATERIALIZED VIEW v AS
SELECT grouping_id(id) AS g, count(*) AS n FROM orders GROUP BY CUBE (shop, id)
-- error: case.sql:2:8: grouping_id() is over all that GROUP BY names; write it without columns

-- case: a window in some sets
CREATE MATERIALIZED VIEW v AS
SELECT shop, count(*) AS n FROM orders GROUP BY ROLLUP (window(ts, '1 minute'), shop)
-- error: case.sql:2:57: window(ts, '1 minute') must be in all sets, because a row belongs to one window; write GROUP BY window(ts, '1 minute'), ROLLUP (...)

-- case: too many sets
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM orders GROUP BY CUBE (id, shop, body, ts, 1 + 1, 2 + 2, 3 + 3, 4 + 4, 5 + 5, 6 + 6, 7 + 7)
-- error: case.sql:2:43: this GROUP BY has 2,048 sets of keys or more, and each record counts in all of them; at most 1,024 are possible, so name those that you need: GROUPING SETS ((a, b), (a), ())

-- case: too many sets together
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM orders GROUP BY CUBE (id, shop, body, ts, 1 + 1, 2 + 2), CUBE (id, shop, body, ts, 1 + 1, 2 + 2)
-- error: case.sql:2:84: this GROUP BY has 4,096 sets of keys or more, and each record counts in all of them; at most 1,024 are possible, so name those that you need: GROUPING SETS ((a, b), (a), ())

-- case: ALL beside a column
CREATE MATERIALIZED VIEW v AS
SELECT shop, count(*) AS n FROM orders GROUP BY ALL, shop
-- error: case.sql:2:49: ALL stands alone in GROUP BY; remove the other columns

-- case: a column that no set names
CREATE MATERIALIZED VIEW v AS
SELECT id, count(*) AS n FROM orders GROUP BY ROLLUP (shop)
-- error: case.sql:2:8: id is neither grouped nor aggregated; add it to GROUP BY, or write max(id)

-- case: an aggregate in a set
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM orders GROUP BY ROLLUP (shop, sum(size(tags)))
-- error: case.sql:2:57: GROUP BY cannot use an aggregate; group by what it is computed from

-- case: an unknown column in a set
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM orders GROUP BY ROLLUP (shopp)
-- error: case.sql:2:51: orders has no column shopp (did you mean shop?); its columns are id, shop, tags, prices, lines, buyer, body, ts
