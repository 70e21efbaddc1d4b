-- case: aggregates that cannot be kept, and what to use instead
CREATE MATERIALIZED VIEW v AS
SELECT percentile(price, 0.5) AS b, median(price) AS c, listagg(id) AS d, string_agg(id, ',') AS e,
  group_concat(id) AS f, histogram_numeric(price, 5) AS g, hll_sketch_agg(id) AS i, regr_sums(price, items) AS j,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS k FROM payments
-- error: case.sql:2:8: the aggregate percentile() cannot be kept turn by turn; write approx_percentile(x, p)
-- error: case.sql:2:37: the aggregate median() cannot be kept turn by turn; write approx_percentile(x, 0.5)
-- error: case.sql:2:57: the aggregate listagg() cannot be kept turn by turn; write collect_list(x), and join its values when you read
-- error: case.sql:2:75: the aggregate string_agg() cannot be kept turn by turn; write collect_list(x), and join its values when you read
-- error: case.sql:3:3: the aggregate group_concat() cannot be kept turn by turn; write collect_list(x), and join its values when you read
-- error: case.sql:3:26: the aggregate histogram_numeric() cannot be kept turn by turn; write histogram(x), or approx_percentile(x, p) once for each p
-- error: case.sql:3:60: the aggregate hll_sketch_agg() cannot be kept turn by turn; write approx_count_distinct(x)
-- error: case.sql:3:85: the aggregate regr_sums() cannot be kept turn by turn; the aggregates that can be are in docs/sql.md
-- error: case.sql:4:3: the aggregate percentile_cont() cannot be kept turn by turn; write approx_percentile(x, p)

-- case: the wrong number of arguments
CREATE MATERIALIZED VIEW v AS
SELECT stddev() AS a, stddev(price, items) AS b, min_by(id) AS c, max_by(id, ts, 3) AS d, first() AS e,
  topk(items) AS j, last_n(id) AS k, max_by(id, ts, 3, 4) AS l, histogram(id, 5) AS m, mode(id, true) AS n,
  corr(price) AS o, covar_pop(price, items, 1) AS p, regr_slope(price) AS q,
  collect_list() AS f, collect_list(id, 3, 4) AS g, array_agg() AS h, count_if() AS i FROM payments
-- error: case.sql:2:8: stddev() takes exactly one argument
-- error: case.sql:2:23: stddev() takes exactly one argument
-- error: case.sql:2:50: min_by() is written min_by(x, y): x where y is least; or min_by(x, y, 10)
-- error: case.sql:2:91: first() is written first(x), or first(x) IGNORE NULLS
-- error: case.sql:3:3: topk() is written topk(x, 10): the 10 greatest values
-- error: case.sql:3:21: last_n() is written last_n(x, 10): the values of the last 10 records
-- error: case.sql:3:38: max_by() is written max_by(x, y): x where y is greatest; or max_by(x, y, 10)
-- error: case.sql:3:65: histogram() takes exactly one argument
-- error: case.sql:3:88: mode() takes exactly one argument
-- error: case.sql:4:3: corr() is written corr(x, y)
-- error: case.sql:4:21: covar_pop() is written covar_pop(x, y)
-- error: case.sql:4:54: regr_slope() is written regr_slope(y, x): y is the one that depends on x
-- error: case.sql:5:3: collect_list() is written collect_list(x) or collect_list(x, 100)
-- error: case.sql:5:24: collect_list() is written collect_list(x) or collect_list(x, 100)
-- error: case.sql:5:53: array_agg() is written array_agg(x) or array_agg(x, 100)
-- error: case.sql:5:71: count_if() takes exactly one argument

-- case: sizes of lists
CREATE MATERIALIZED VIEW v AS
SELECT collect_list(id, 0) AS a, collect_list(id, 10001) AS b, collect_list(id, items) AS c, collect_list(id, -1) AS d,
  collect_list(id, 1.5) AS e, collect_list(id, '3') AS f, topk(items, 0) AS g, max_by(id, ts, 10001) AS h,
  last_n(id, items) AS i FROM payments
-- error: case.sql:2:25: collect_list() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:2:51: collect_list() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:2:81: collect_list() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:2:111: collect_list() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:3:20: collect_list() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:3:48: collect_list() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:3:71: topk() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:3:95: max_by() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:4:14: last_n() takes the number of values to keep: write a whole number from 1 to 10,000

-- case: nulls where they never count
CREATE MATERIALIZED VIEW v AS
SELECT sum(items) IGNORE NULLS AS a, max_by(id, ts) RESPECT NULLS AS b, first(id, items) AS c, last(id, true, false) AS d
FROM payments
-- error: case.sql:2:8: sum(): IGNORE NULLS belongs to first, last, first_n, last_n, collect_list and collect_set; nulls never count here, so remove it
-- error: case.sql:2:38: max_by(): RESPECT NULLS belongs to first, last, first_n, last_n, collect_list and collect_set; nulls never count here, so remove it
-- error: case.sql:2:73: first(): write first(x) IGNORE NULLS
-- error: case.sql:2:96: last() is written last(x), or last(x) IGNORE NULLS

-- case: FILTER that is none
CREATE MATERIALIZED VIEW v AS
SELECT sum(items) FILTER (WHERE) AS a, sum(items) FILTER (items > 1) AS b, upper(id) FILTER (WHERE items > 1) AS c
FROM payments
-- error: case.sql:2:27: a condition is missing after WHERE; write one
-- error: case.sql:2:51: FILTER is written sum(x) FILTER (WHERE condition)
-- error: case.sql:2:76: FILTER is not allowed after upper(), which is not an aggregate; remove it

-- case: aggregates within FILTER and its unknown columns
CREATE MATERIALIZED VIEW v AS
SELECT sum(items) FILTER (WHERE count(*) > 1) AS a, sum(items) FILTER (WHERE itms > 1) AS b,
  sum(items) FILTER (WHERE now() > ts) AS c FROM payments
-- error: case.sql:2:8: sum() cannot take another aggregate; remove one of the two
-- error: case.sql:2:78: payments has no column itms (did you mean items?); its columns are id, card, amount, Country, items, price, tags, address, date, ts, seen
-- error: case.sql:3:28: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()

-- case: the window within FILTER
CREATE MATERIALIZED VIEW v AS
SELECT count(*) FILTER (WHERE window.start = ts) AS a FROM payments GROUP BY window(ts, '1 minute')
-- error: case.sql:2:8: an aggregate cannot read the window's edges; use window.start and window.end outside of count()

-- case: DISTINCT and ALL
CREATE MATERIALIZED VIEW v AS
SELECT first(DISTINCT id) AS a, min(DISTINCT items) AS b, count(ALL id) AS c, max_by(DISTINCT id, ts) AS d,
  sum(DISTINCT) AS e, topk_distinct(DISTINCT items, 3) AS f FROM payments
-- error: case.sql:2:8: first(DISTINCT ...) cannot be kept turn by turn; remove DISTINCT, or write collect_set(x) and work it out when you read
-- error: case.sql:2:33: min(DISTINCT ...) is min(...); remove DISTINCT
-- error: case.sql:2:59: count(ALL ...) is count(...); remove ALL
-- error: case.sql:2:79: max_by(DISTINCT ...) cannot be kept turn by turn; remove DISTINCT, or write collect_set(x) and work it out when you read
-- error: case.sql:3:3: sum(DISTINCT ...) needs a column; write sum(DISTINCT x)
-- error: case.sql:3:23: topk_distinct(DISTINCT ...) is topk_distinct(...); remove DISTINCT

-- case: OVER
CREATE MATERIALIZED VIEW v AS
SELECT first(id) OVER (ORDER BY ts) AS a, count(*) FILTER (WHERE items > 1) OVER () AS b FROM payments
-- error: case.sql:2:8: first() OVER: window functions are not built yet; write GROUP BY, or use OVER when you read the view
-- error: case.sql:2:43: count() OVER: window functions are not built yet; write GROUP BY, or use OVER when you read the view

-- case: stars of what counts no records
CREATE MATERIALIZED VIEW v AS
SELECT first(*) AS a, min_by(*, ts) AS b FROM payments
-- error: case.sql:2:8: first(*) is not allowed; write a column, or count(*)
-- error: case.sql:2:30: one expression without a name is expected here; check its syntax

-- case: aggregates of aggregates
CREATE MATERIALIZED VIEW v AS
SELECT max_by(id, count(*)) AS a, first(last(id)) AS b FROM payments
-- error: case.sql:2:8: max_by() cannot take another aggregate; remove one of the two
-- error: case.sql:2:35: first() cannot take another aggregate; remove one of the two

-- case: aggregates in WHERE
CREATE MATERIALIZED VIEW v AS
SELECT id FROM payments WHERE any(items > 1)
-- error: case.sql:2:31: WHERE looks at single records; move the aggregate to HAVING

-- case: shares that are none
CREATE MATERIALIZED VIEW v AS
SELECT approx_percentile(price, 95) AS a, approx_percentile(price, -0.5) AS b, approx_percentile(price, items) AS c,
  approx_percentile(price, array(0.5, 0.9)) AS d, approx_percentile(price, 0.12345678901) AS e,
  approx_percentile(price) AS f, approx_percentile(price, 0.5, 100) AS g, approx_percentile(price, '0.5') AS h FROM payments
-- error: case.sql:2:33: approx_percentile() takes a percentile: write a number from 0 to 1, such as 0.95, once for each
-- error: case.sql:2:68: approx_percentile() takes a percentile: write a number from 0 to 1, such as 0.95, once for each
-- error: case.sql:2:105: approx_percentile() takes a percentile: write a number from 0 to 1, such as 0.95, once for each
-- error: case.sql:3:28: approx_percentile() takes a percentile: write a number from 0 to 1, such as 0.95, once for each
-- error: case.sql:3:76: approx_percentile() takes a percentile: write a number from 0 to 1, such as 0.95, once for each
-- error: case.sql:4:3: approx_percentile() is written approx_percentile(x, 0.95); its error is always 1 %
-- error: case.sql:4:34: approx_percentile() is written approx_percentile(x, 0.95); its error is always 1 %
-- error: case.sql:4:100: approx_percentile() takes a percentile: write a number from 0 to 1, such as 0.95, once for each

-- case: different values of nothing, and of too much
CREATE MATERIALIZED VIEW v AS
SELECT count(DISTINCT) AS a, count(DISTINCT *) AS b, count(DISTINCT id, *) AS c, approx_count_distinct(id, 0.01) AS d,
  approx_top_k(id, 0) AS e, collect_set(id, 20000) AS f, approx_count_distinct() AS g FROM payments
-- error: case.sql:2:8: count(DISTINCT ...) needs a column; write count(DISTINCT x)
-- error: case.sql:2:30: count(DISTINCT ...) needs a column; write count(DISTINCT x)
-- error: case.sql:2:73: one expression without a name is expected here; check its syntax
-- error: case.sql:2:82: approx_count_distinct() takes exactly one argument
-- error: case.sql:3:20: approx_top_k() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:3:45: collect_set() takes the number of values to keep: write a whole number from 1 to 10,000
-- error: case.sql:3:58: approx_count_distinct() takes exactly one argument

-- case: arguments that are missing, and nulls twice over
CREATE MATERIALIZED VIEW v AS
SELECT first(id,) AS a, first(, true) AS b, max_by(id,) AS c, collect_list(, 3) AS d, approx_percentile(price,) AS e,
  first(id, true) RESPECT NULLS AS f, last(id IGNORE NULLS, false) AS g, first(id,,) AS h, count(DISTINCT id,) AS i,
  sum(items,) AS j, count(,) AS k FROM payments
-- error: case.sql:2:8: first(): an argument is missing next to a comma; write it, or remove the comma
-- error: case.sql:2:25: first(): an argument is missing next to a comma; write it, or remove the comma
-- error: case.sql:2:45: max_by(): an argument is missing next to a comma; write it, or remove the comma
-- error: case.sql:2:63: collect_list(): an argument is missing next to a comma; write it, or remove the comma
-- error: case.sql:2:87: approx_percentile(): an argument is missing next to a comma; write it, or remove the comma
-- error: case.sql:3:3: first(): its second argument and RESPECT NULLS mean the same; write first(x) RESPECT NULLS
-- error: case.sql:3:39: last(): its second argument and IGNORE NULLS mean the same; write last(x) IGNORE NULLS
-- error: case.sql:3:74: first() is written first(x), or first(x) IGNORE NULLS
-- error: case.sql:3:92: count(): an argument is missing next to a comma; write it, or remove the comma
-- error: case.sql:4:3: sum() takes exactly one argument
-- error: case.sql:4:21: count() takes exactly one argument
