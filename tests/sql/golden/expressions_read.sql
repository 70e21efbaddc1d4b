-- case: everyday expressions
CREATE MATERIALIZED VIEW v AS
SELECT CASE shop WHEN 'a' THEN 1 ELSE 2 END AS a, id::INT AS b, TRY_CAST(id AS DECIMAL(10,2)) AS c, CAST(id AS VARCHAR(10)) AS d, INT(id) AS e, tags[0] AS f, prices['x'] AS g, lines[0].sku AS h, lines.sku AS i, prices.x AS j, (buyer).name AS k, struct(id, shop).id AS l, array(1, 2)[1] AS m, map('a', 1)['a'] AS n, lines[size(lines) - 1]['sku'] AS o FROM orders
-- view: v, 0 us
-- from: orders
-- output: a = case shop when 'a' then 1 else 2 end
-- output: b = id :: int
-- output: c = try_cast(id as decimal(10, 2))
-- output: d = cast(id as varchar(10))
-- output: e = int(id)
-- output: f = tags[0]
-- output: g = prices['x']
-- output: h = lines[0].sku
-- output: i = lines.sku
-- output: j = prices.x
-- output: k = (buyer).name
-- output: l = struct(id, shop).id
-- output: m = array(1, 2)[1]
-- output: n = map('a', 1)['a']
-- output: o = lines[size(lines) - 1]['sku']

-- case: functions of functions
CREATE MATERIALIZED VIEW v AS
SELECT filter(tags, t -> t <> shop) AS a, aggregate(transform(lines, l -> l.qty), 0, (acc, x) -> acc + x) AS b, map_filter(prices, (k, v) -> v > 1) AS c, zip_with(tags, tags, (x, y) -> concat(x, y)) AS d, array_sort(tags, (l, r) -> CASE WHEN l < r THEN -1 ELSE 1 END) AS e, reduce(tags, '', (a, x) -> a || x, a -> upper(a)) AS f, transform(tags, (x, i) -> concat(x, i)) AS g FROM orders
-- view: v, 0 us
-- from: orders
-- output: a = filter(tags, t -> t <> shop)
-- output: b = aggregate(transform(lines, l -> l.qty), 0, (acc, x) -> acc + x)
-- output: c = map_filter(prices, (k, v) -> v > 1)
-- output: d = zip_with(tags, tags, (x, y) -> concat(x, y))
-- output: e = array_sort(tags, (l, r) -> case when l < r then - 1 else 1 end)
-- output: f = reduce(tags, '', (a, x) -> a || x, a -> upper(a))
-- output: g = transform(tags, (x, i) -> concat(x, i))

-- case: JSON
CREATE MATERIALIZED VIEW v AS
SELECT get_json_object(body, '$.a.b') AS a, from_json(body, 'a INT, b STRUCT<c: STRING>').b.c AS b, to_json(buyer) AS c, json_array_length(body) AS d, from_json(body, 'map<string, int>')['x'] AS e FROM orders
-- view: v, 0 us
-- from: orders
-- output: a = get_json_object(body, '$.a.b')
-- output: b = from_json(body, 'a INT, b STRUCT<c: STRING>').b.c
-- output: c = to_json(buyer)
-- output: d = json_array_length(body)
-- output: e = from_json(body, 'map<string, int>')['x']

-- case: time
CREATE MATERIALIZED VIEW v AS
SELECT ts + INTERVAL 1 DAY AS a, ts - INTERVAL '1' HOUR AS b, ts + INTERVAL '1 02:00:00' DAY TO SECOND AS c, timestampdiff(MINUTE, ts, ts) AS d, extract(HOUR FROM ts) AS e, dateadd(DAY, 1, ts) AS f, ts::DATE AS g, INTERVAL '1' DAY + ts AS h, date_trunc('hour', ts) AS i FROM orders
-- view: v, 0 us
-- from: orders
-- output: a = ts + interval 1 day
-- output: b = ts - interval '1' hour
-- output: c = ts + interval '1 02:00:00' day to second
-- output: d = timestampdiff(minute, ts, ts)
-- output: e = extract(hour from ts)
-- output: f = dateadd(day, 1, ts)
-- output: g = ts :: date
-- output: h = interval '1' day + ts
-- output: i = date_trunc('hour', ts)

-- case: operators
CREATE MATERIALIZED VIEW v AS
SELECT id || shop AS a, 7 DIV 2 AS b, 1 & 2 | 3 ^ 4 AS c, shop <=> id AS d, id LIKE ANY ('a', 'b') AS e, shop IS NOT DISTINCT FROM id AS f, ~1 AS g, id RLIKE '^a' AS h, trim(BOTH 'x' FROM id) AS i, substring(id FROM 1 FOR 2) AS j, position('a' IN id) AS k FROM orders
-- view: v, 0 us
-- from: orders
-- output: a = id || shop
-- output: b = 7 div 2
-- output: c = 1 & 2 | 3 ^ 4
-- output: d = shop <=> id
-- output: e = id like any ('a', 'b')
-- output: f = shop is not distinct from id
-- output: g = ~ 1
-- output: h = id rlike '^a'
-- output: i = trim(both 'x' from id)
-- output: j = substring(id from 1 for 2)
-- output: k = position('a' in id)

-- case: a lambda's variable does not take the place of a column
CREATE MATERIALIZED VIEW v AS
SELECT transform(tags, Id -> concat(iD, orders.id)) AS a, transform(lines, shop -> concat(shop.sku, orders.shop)) AS b, transform(tags, id -> transform(tags, id -> concat(id, orders.id))) AS c, transform(tags, id -> upper(id)) AS d FROM orders
-- view: v, 0 us
-- from: orders
-- output: a = transform(tags, _variable_id -> concat(_variable_id, id))
-- output: b = transform(lines, _variable_shop -> concat(_variable_shop.sku, shop))
-- output: c = transform(tags, _variable_id -> transform(tags, _variable_id -> concat(_variable_id, id)))
-- output: d = transform(tags, id -> upper(id))

-- case: a lambda's variable in another case
CREATE MATERIALIZED VIEW v AS
SELECT transform(tags, x -> upper(X)) AS a, transform(lines, l -> L.sku) AS b FROM orders
-- view: v, 0 us
-- from: orders
-- output: a = transform(tags, x -> upper(X))
-- output: b = transform(lines, l -> L.sku)

-- case: a lambda's variable over a query within another
CREATE MATERIALIZED VIEW v AS
SELECT transform(t, id -> concat(id, k)) AS a FROM (SELECT tags AS t, id AS k FROM orders)
-- view: v, 0 us
-- from: orders
-- output: t = tags
-- output: k = id
-- output: a = transform(t, _variable_id -> concat(_variable_id, k))
