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

-- case: the first and the last values, with and without nulls
CREATE MATERIALIZED VIEW v AS
SELECT first_n(id, 3) AS a, last_n(id, 3) AS b, last_n(id, 3) IGNORE NULLS AS c, first_n(id, 3) IGNORE NULLS AS d,
  collect_list(id, 3) RESPECT NULLS AS e, collect_list(id, 3) IGNORE NULLS AS f, array_agg(id) RESPECT NULLS AS g,
  collect_set(id) RESPECT NULLS AS h, collect_set(id) IGNORE NULLS AS i, last_n(id RESPECT NULLS, 3) AS j,
  any_value(id) AS k, any_value(id) IGNORE NULLS AS l, any_value(id, true) AS m FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = first_n(id, 3)
-- call: call_1 = last_n(id, 3)
-- call: call_2 = last_n(id, 3), without nulls
-- call: call_3 = collect_list(id, 3)
-- call: call_4 = first_n(id, 1000)
-- call: call_5 = collect_set_with_nulls(id, 1000)
-- call: call_6 = collect_set(id, 1000)
-- call: call_7 = first(id)
-- call: call_8 = first(id), without nulls
-- output: a = call_0
-- output: b = call_1
-- output: c = call_2
-- output: d = call_3
-- output: e = call_0
-- output: f = call_3
-- output: g = call_4
-- output: h = call_5
-- output: i = call_6
-- output: j = call_1
-- output: k = call_7
-- output: l = call_8
-- output: m = call_8

-- case: the greatest and the least values
CREATE MATERIALIZED VIEW v AS
SELECT topk(items, 3) AS a, topk_distinct(items, 3) AS b, TOPKDISTINCT(items, 3) AS c, bottomk(items, 10000) AS d,
  bottomk_distinct(items, 1) AS e, max_by(id, price, 3) AS f, min_by(id, price, 3) AS g, max_by(id, price) AS h FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = topk(items, 3)
-- call: call_1 = topk_distinct(items, 3)
-- call: call_2 = bottomk(items, 10000)
-- call: call_3 = bottomk_distinct(items, 1)
-- call: call_4 = max_by(id, price, 3)
-- call: call_5 = min_by(id, price, 3)
-- call: call_6 = max_by(id, price)
-- output: a = call_0
-- output: b = call_1
-- output: c = call_1
-- output: d = call_2
-- output: e = call_3
-- output: f = call_4
-- output: g = call_5
-- output: h = call_6

-- case: how often values occur, and sums of different ones
CREATE MATERIALIZED VIEW v AS
SELECT histogram(id) AS a, mode(id) AS b, sum(DISTINCT items) AS c, avg(DISTINCT items) FILTER (WHERE items > 1) AS d,
  mean(distinct items) AS e, try_sum(items) AS f, try_avg(items) AS g, array_agg(DISTINCT id) AS h,
  collect_list(DISTINCT id, 5) RESPECT NULLS AS i, topk(DISTINCT items, 2) AS j FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = histogram(id)
-- call: call_1 = mode(id)
-- call: call_2 = sum_distinct(items)
-- call: call_3 = avg_distinct(items), where items > 1
-- call: call_4 = avg_distinct(items)
-- call: call_5 = try_sum(items)
-- call: call_6 = avg(items)
-- call: call_7 = collect_set(id, 1000)
-- call: call_8 = collect_set_with_nulls(id, 5)
-- call: call_9 = topk_distinct(items, 2)
-- output: a = call_0
-- output: b = call_1
-- output: c = call_2
-- output: d = call_3
-- output: e = call_4
-- output: f = call_5
-- output: g = call_6
-- output: h = call_7
-- output: i = call_8
-- output: j = call_9

-- case: two columns together
CREATE MATERIALIZED VIEW v AS
SELECT corr(price, items) AS a, covar_pop(price, items) AS b, covar_samp(price, items) AS c, regr_avgx(price, items) AS d,
  regr_avgy(price, items) AS e, regr_count(price, items) AS f, regr_intercept(price, items) AS g, regr_r2(price, items) AS h,
  regr_slope(price, items) AS i, regr_sxx(price, items) AS j, regr_sxy(price, items) AS k, REGR_SYY(price, items + 1) AS l
FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = corr(price, items)
-- call: call_1 = covar_pop(price, items)
-- call: call_2 = covar_samp(price, items)
-- call: call_3 = regr_avgx(price, items)
-- call: call_4 = regr_avgy(price, items)
-- call: call_5 = regr_count(price, items)
-- call: call_6 = regr_intercept(price, items)
-- call: call_7 = regr_r2(price, items)
-- call: call_8 = regr_slope(price, items)
-- call: call_9 = regr_sxx(price, items)
-- call: call_10 = regr_sxy(price, items)
-- call: call_11 = regr_syy(price, items + 1)
-- output: a = call_0
-- output: b = call_1
-- output: c = call_2
-- output: d = call_3
-- output: e = call_4
-- output: f = call_5
-- output: g = call_6
-- output: h = call_7
-- output: i = call_8
-- output: j = call_9
-- output: k = call_10
-- output: l = call_11

-- case: several columns together are different
CREATE MATERIALIZED VIEW v AS
SELECT count(DISTINCT id, card) AS a, count(DISTINCT upper(id), items + 1, id) FILTER (WHERE items > 1) AS b,
  count(DISTINCT address) AS c, collect_set(tags) AS d FROM payments
-- view: v, 0 us
-- from: payments
-- window: none
-- call: call_0 = count_distinct(case when id is not null and card is not null then named_struct('c0', id, 'c1', card) end)
-- call: call_1 = count_distinct(case when (upper(id)) is not null and (items + 1) is not null and id is not null then named_struct('c0', (upper(id)), 'c1', (items + 1), 'c2', id) end), where items > 1
-- call: call_2 = count_distinct(address)
-- call: call_3 = collect_set(tags, 1000)
-- output: a = call_0
-- output: b = call_1
-- output: c = call_2
-- output: d = call_3
