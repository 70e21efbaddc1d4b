-- case: spread, truth and ends, by all their names
CREATE MATERIALIZED VIEW v AS
SELECT stddev(price) AS a, std(price) AS b, stddev_samp(price) AS c, stddev_pop(price) AS d, variance(price) AS e,
  var_samp(price) AS f, var_pop(price) AS g, bool_and(items > 1) AS h, every(items > 1) AS i, bool_or(items > 1) AS j,
  any(items > 1) AS k, some(items > 1) AS l, count_if(items > 1) AS m, first(id) AS n, first_value(id) AS o,
  last(id) AS p, LAST_VALUE(id) AS q FROM payments
-- view: v, grouped over payments, 0 us
-- call: a0 = stddev_samp of price
-- call: a1 = stddev_pop of price
-- call: a2 = var_samp of price
-- call: a3 = var_pop of price
-- call: a4 = bool_and of items > 1
-- call: a5 = bool_or of items > 1
-- call: a6 = count_if of items > 1
-- call: a7 = first of id
-- call: a8 = last of id
-- output: a = a0
-- output: b = a0
-- output: c = a0
-- output: d = a1
-- output: e = a2
-- output: f = a2
-- output: g = a3
-- output: h = a4
-- output: i = a4
-- output: j = a5
-- output: k = a5
-- output: l = a5
-- output: m = a6
-- output: n = a7
-- output: o = a7
-- output: p = a8
-- output: q = a8

-- case: nulls of first and last
CREATE MATERIALIZED VIEW v AS
SELECT first(id) IGNORE NULLS AS a, first(id IGNORE NULLS) AS b, first(id, true) AS c, first(id, false) AS d,
  first(id) RESPECT NULLS AS e, last(id) FILTER (WHERE items > 1) IGNORE NULLS AS f FROM payments
-- view: v, grouped over payments, 0 us
-- call: a0 = first of id, without nulls
-- call: a1 = first of id
-- call: a2 = last of id, without nulls, where items > 1
-- output: a = a0
-- output: b = a0
-- output: c = a0
-- output: d = a1
-- output: e = a1
-- output: f = a2

-- case: values by others, and lists with and without a size
CREATE MATERIALIZED VIEW v AS
SELECT min_by(id, ts) AS a, max_by(upper(id), price + 1) AS b, collect_list(id) AS c, collect_list(id, 5) AS d,
  array_agg(id) AS e, collect_list(ID, 1000) AS f FROM payments
-- view: v, grouped over payments, 0 us
-- call: a0 = min_by of id by ts
-- call: a1 = max_by of upper(id) by price + 1
-- call: a2 = collect_list of id, 1000
-- call: a3 = collect_list of id, 5
-- output: a = a0
-- output: b = a1
-- output: c = a2
-- output: d = a3
-- output: e = a2
-- output: f = a2

-- case: FILTER on any aggregate, also within expressions and HAVING
CREATE MATERIALIZED VIEW v AS
SELECT country, count(*) FILTER (WHERE items > 1) AS a, sum(p.items) FILTER (WHERE p.country = 'x' OR items IS NULL) AS b,
  count(*) AS c, count(*) FILTER(WHERE items>1) + 1 AS d, min_by(id, ts) FILTER (WHERE exists(tags, x -> x = 'a')) AS e
FROM payments p GROUP BY country HAVING sum(items) FILTER (WHERE items > 1) > 3 AND a > 1
-- view: v, grouped over payments, 0 us
-- key: k0 = Country
-- call: a0 = count of None, where items > 1
-- call: a1 = sum of items, where Country = 'x' OR items IS NULL
-- call: a2 = count of None
-- call: a3 = min_by of id by ts, where exists(tags, x -> x = 'a')
-- call: a4 = sum of items, where items > 1
-- output: Country = k0
-- output: a = a0
-- output: b = a1
-- output: c = a2
-- output: d = a0 + 1
-- output: e = a3
-- having: a4 > 3 AND a0 > 1

-- case: filter is also a function of arrays
CREATE MATERIALIZED VIEW v AS
SELECT sum(size(filter(tags, x -> x <> ''))) FILTER (WHERE size(filter(tags, x -> x = 'a')) > 0) AS a FROM payments
-- view: v, grouped over payments, 0 us
-- call: a0 = sum of size(filter(tags, x -> x <> '')), where size(filter(tags, x -> x = 'a')) > 0
-- output: a = a0

-- case: different values, counted, guessed, ranked and kept
CREATE MATERIALIZED VIEW v AS
SELECT count(DISTINCT id) AS a, count(distinct upper(id)) FILTER (WHERE items > 1) AS b, approx_count_distinct(id) AS c,
  approx_percentile(price, 0.5) AS d, percentile_approx(price, 0.50) AS e, approx_percentile(price, 1) AS f,
  approx_top_k(id) AS g, approx_top_k(id, 3) AS h, collect_set(id) AS i, collect_set(id, 7) AS j FROM payments
-- view: v, grouped over payments, 0 us
-- call: a0 = count_distinct of id
-- call: a1 = count_distinct of upper(id), where items > 1
-- call: a2 = approx_count_distinct of id
-- call: a3 = approx_percentile of price, 0.5
-- call: a4 = approx_percentile of price, 1
-- call: a5 = approx_top_k of id, 5
-- call: a6 = approx_top_k of id, 3
-- call: a7 = collect_set of id, 1000
-- call: a8 = collect_set of id, 7
-- output: a = a0
-- output: b = a1
-- output: c = a2
-- output: d = a3
-- output: e = a3
-- output: f = a4
-- output: g = a5
-- output: h = a6
-- output: i = a7
-- output: j = a8
