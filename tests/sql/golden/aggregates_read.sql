-- case: spread, truth and ends, by all their names
CREATE MATERIALIZED VIEW v AS
SELECT stddev(price) AS a, std(price) AS b, stddev_samp(price) AS c, stddev_pop(price) AS d, variance(price) AS e,
  var_samp(price) AS f, var_pop(price) AS g, bool_and(items > 1) AS h, every(items > 1) AS i, bool_or(items > 1) AS j,
  any(items > 1) AS k, some(items > 1) AS l, count_if(items > 1) AS m, first(id) AS n, first_value(id) AS o,
  last(id) AS p, LAST_VALUE(id) AS q FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = stddev_samp(price)
-- call: call_1 = stddev_pop(price)
-- call: call_2 = var_samp(price)
-- call: call_3 = var_pop(price)
-- call: call_4 = bool_and(items > 1)
-- call: call_5 = bool_or(items > 1)
-- call: call_6 = count_if(items > 1)
-- call: call_7 = first(id)
-- call: call_8 = last(id)
-- output: a = call_0
-- output: b = call_0
-- output: c = call_0
-- output: d = call_1
-- output: e = call_2
-- output: f = call_2
-- output: g = call_3
-- output: h = call_4
-- output: i = call_4
-- output: j = call_5
-- output: k = call_5
-- output: l = call_5
-- output: m = call_6
-- output: n = call_7
-- output: o = call_7
-- output: p = call_8
-- output: q = call_8

-- case: nulls of first and last
CREATE MATERIALIZED VIEW v AS
SELECT first(id) IGNORE NULLS AS a, first(id IGNORE NULLS) AS b, first(id, true) AS c, first(id, false) AS d,
  first(id) RESPECT NULLS AS e, last(id) FILTER (WHERE items > 1) IGNORE NULLS AS f FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = first(id), without nulls
-- call: call_1 = first(id)
-- call: call_2 = last(id), without nulls, where items > 1
-- output: a = call_0
-- output: b = call_0
-- output: c = call_0
-- output: d = call_1
-- output: e = call_1
-- output: f = call_2

-- case: values by others, and lists with and without a size
CREATE MATERIALIZED VIEW v AS
SELECT min_by(id, ts) AS a, max_by(upper(id), price + 1) AS b, collect_list(id) AS c, collect_list(id, 5) AS d,
  array_agg(id) AS e, collect_list(ID, 1000) AS f FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = min_by(id, ts)
-- call: call_1 = max_by(upper(id), price + 1)
-- call: call_2 = collect_list(id, 1000)
-- call: call_3 = collect_list(id, 5)
-- output: a = call_0
-- output: b = call_1
-- output: c = call_2
-- output: d = call_3
-- output: e = call_2
-- output: f = call_2

-- case: FILTER on any aggregate, also within expressions and HAVING
CREATE MATERIALIZED VIEW v AS
SELECT country, count(*) FILTER (WHERE items > 1) AS a, sum(p.items) FILTER (WHERE p.country = 'x' OR items IS NULL) AS b,
  count(*) AS c, count(*) FILTER(WHERE items>1) + 1 AS d, min_by(id, ts) FILTER (WHERE exists(tags, x -> x = 'a')) AS e
FROM payments p GROUP BY country HAVING sum(items) FILTER (WHERE items > 1) > 3 AND a > 1
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = Country
-- call: call_0 = count(), where items > 1
-- call: call_1 = sum(items), where Country = 'x' or items is null
-- call: call_2 = count()
-- call: call_3 = min_by(id, ts), where exists(tags, x -> x = 'a')
-- call: call_4 = sum(items), where items > 1
-- having: call_4 > 3 and call_0 > 1
-- output: Country = key_0
-- output: a = call_0
-- output: b = call_1
-- output: c = call_2
-- output: d = call_0 + 1
-- output: e = call_3

-- case: filter is also a function of arrays
CREATE MATERIALIZED VIEW v AS
SELECT sum(size(filter(tags, x -> x <> ''))) FILTER (WHERE size(filter(tags, x -> x = 'a')) > 0) AS a FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = sum(size(filter(tags, x -> x <> ''))), where size(filter(tags, x -> x = 'a')) > 0
-- output: a = call_0

-- case: different values, counted, guessed, ranked and kept
CREATE MATERIALIZED VIEW v AS
SELECT count(DISTINCT id) AS a, count(distinct upper(id)) FILTER (WHERE items > 1) AS b, approx_count_distinct(id) AS c,
  approx_percentile(price, 0.5) AS d, percentile_approx(price, 0.50) AS e, approx_percentile(price, 1) AS f,
  approx_top_k(id) AS g, approx_top_k(id, 3) AS h, collect_set(id) AS i, collect_set(id, 7) AS j FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = count_distinct(id)
-- call: call_1 = count_distinct(upper(id)), where items > 1
-- call: call_2 = approx_count_distinct(id)
-- call: call_3 = approx_percentile(price, 0.5)
-- call: call_4 = approx_percentile(price, 1)
-- call: call_5 = approx_top_k(id, 5)
-- call: call_6 = approx_top_k(id, 3)
-- call: call_7 = collect_set(id, 1000)
-- call: call_8 = collect_set(id, 7)
-- output: a = call_0
-- output: b = call_1
-- output: c = call_2
-- output: d = call_3
-- output: e = call_3
-- output: f = call_4
-- output: g = call_5
-- output: h = call_6
-- output: i = call_7
-- output: j = call_8
