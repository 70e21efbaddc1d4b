-- case: a rollup
CREATE MATERIALIZED VIEW v AS
SELECT shop, id, count(*) AS n FROM orders GROUP BY ROLLUP (shop, id)
-- view: v, 0 us
-- from: orders
-- generate: _grouping_id = explode(array(0L, 1L, 3L))
-- window: none
-- key: key_0 = case when (_grouping_id & 2L) = 0L then shop end
-- key: key_1 = case when (_grouping_id & 1L) = 0L then id end
-- key: key_2 = _grouping_id
-- call: call_0 = count()
-- output: shop = key_0
-- output: id = key_1
-- output: n = call_0

-- case: a cube beside a plain key
CREATE MATERIALIZED VIEW v AS
SELECT shop, id, body, grouping(id) AS g, grouping_id() AS gid, sum(size(tags)) AS n FROM orders GROUP BY shop, CUBE (id, upper(body)), body
-- view: v, 0 us
-- from: orders
-- generate: _grouping_id = explode(array(0L, 2L, 4L, 6L))
-- window: none
-- key: key_0 = shop
-- key: key_1 = case when (_grouping_id & 4L) = 0L then id end
-- key: key_2 = case when (_grouping_id & 2L) = 0L then (upper(body)) end
-- key: key_3 = body
-- key: key_4 = _grouping_id
-- key: key_5 = cast(case when (_grouping_id & 4L) = 0L then 0 else 1 end as tinyint)
-- call: call_0 = sum(size(tags))
-- output: shop = key_0
-- output: id = key_1
-- output: body = key_3
-- output: g = key_5
-- output: gid = key_4
-- output: n = call_0

-- case: grouping sets by name, alias and number, with nested ones
CREATE MATERIALIZED VIEW v AS
SELECT upper(shop) AS s, id, count(*) AS n FROM orders GROUP BY GROUPING SETS ((s, 2), id, (), ROLLUP (body))
-- view: v, 0 us
-- from: orders
-- generate: _grouping_set, _grouping_id = posexplode(array(1L, 5L, 7L, 6L, 7L))
-- window: none
-- key: key_0 = case when (_grouping_id & 4L) = 0L then (upper(shop)) end
-- key: key_1 = case when (_grouping_id & 2L) = 0L then id end
-- key: key_2 = case when (_grouping_id & 1L) = 0L then body end
-- key: key_3 = _grouping_id
-- key: key_4 = _grouping_set
-- call: call_0 = count()
-- output: s = key_0
-- output: id = key_1
-- output: n = call_0

-- case: WITH ROLLUP
CREATE MATERIALIZED VIEW v AS
SELECT shop, id, count(*) AS n FROM orders GROUP BY shop, id WITH ROLLUP
-- view: v, 0 us
-- from: orders
-- generate: _grouping_id = explode(array(0L, 1L, 3L))
-- window: none
-- key: key_0 = case when (_grouping_id & 2L) = 0L then shop end
-- key: key_1 = case when (_grouping_id & 1L) = 0L then id end
-- key: key_2 = _grouping_id
-- call: call_0 = count()
-- output: shop = key_0
-- output: id = key_1
-- output: n = call_0

-- case: WITH CUBE
CREATE MATERIALIZED VIEW v AS
SELECT shop, id, count(*) AS n FROM orders GROUP BY shop, id WITH CUBE
-- view: v, 0 us
-- from: orders
-- generate: _grouping_id = explode(array(0L, 1L, 2L, 3L))
-- window: none
-- key: key_0 = case when (_grouping_id & 2L) = 0L then shop end
-- key: key_1 = case when (_grouping_id & 1L) = 0L then id end
-- key: key_2 = _grouping_id
-- call: call_0 = count()
-- output: shop = key_0
-- output: id = key_1
-- output: n = call_0

-- case: keys and sets apart
CREATE MATERIALIZED VIEW v AS
SELECT shop, id, grouping_id(id, shop) AS g, count(*) AS n FROM orders GROUP BY id, shop GROUPING SETS ((shop), (id, shop))
-- view: v, 0 us
-- from: orders
-- generate: _grouping_id = explode(array(2L, 0L))
-- window: none
-- key: key_0 = case when (_grouping_id & 2L) = 0L then id end
-- key: key_1 = shop
-- key: key_2 = _grouping_id
-- call: call_0 = count()
-- output: shop = key_1
-- output: id = key_0
-- output: g = key_2
-- output: n = call_0

-- case: a set twice gives its rows twice
CREATE MATERIALIZED VIEW v AS
SELECT shop, count(*) AS n FROM orders GROUP BY GROUPING SETS ((shop), (shop), ())
-- view: v, 0 us
-- from: orders
-- generate: _grouping_set, _grouping_id = posexplode(array(0L, 0L, 1L))
-- window: none
-- key: key_0 = case when (_grouping_id & 1L) = 0L then shop end
-- key: key_1 = _grouping_id
-- key: key_2 = _grouping_set
-- call: call_0 = count()
-- output: shop = key_0
-- output: n = call_0

-- case: in windows
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, shop, count(*) AS n FROM orders GROUP BY window(ts, '1 minute'), ROLLUP (shop) HAVING grouping(shop) = 0 AND count(*) > 1
-- view: v, 0 us
-- from: orders
-- generate: _grouping_id = explode(array(0L, 1L))
-- window: 60000000 us
-- key: key_0 = case when (_grouping_id & 1L) = 0L then shop end
-- key: key_1 = _grouping_id
-- key: key_2 = cast(case when (_grouping_id & 1L) = 0L then 0 else 1 end as tinyint)
-- call: call_0 = count()
-- having: key_2 = 0 and call_0 > 1
-- output: s = _window_start
-- output: shop = key_0
-- output: n = call_0

-- case: windows in all sets
CREATE MATERIALIZED VIEW v AS
SELECT window.end AS e, shop, count(*) AS n FROM orders GROUP BY GROUPING SETS ((window(ts, '1 minute'), shop), (window(ts, '1 minute')))
-- view: v, 0 us
-- from: orders
-- generate: _grouping_id = explode(array(0L, 1L))
-- window: 60000000 us
-- key: key_0 = case when (_grouping_id & 1L) = 0L then shop end
-- key: key_1 = _grouping_id
-- call: call_0 = count()
-- output: e = _window_end
-- output: shop = key_0
-- output: n = call_0

-- case: an expression over a key, and an aggregate of its column
CREATE MATERIALIZED VIEW v AS
SELECT concat(shop, '!') AS s, max(shop) AS m FROM orders GROUP BY CUBE (shop)
-- view: v, 0 us
-- from: orders
-- generate: _grouping_id = explode(array(0L, 1L))
-- window: none
-- key: key_0 = case when (_grouping_id & 1L) = 0L then shop end
-- key: key_1 = _grouping_id
-- call: call_0 = max(shop)
-- output: s = concat(key_0, '!')
-- output: m = call_0

-- case: of elements
CREATE MATERIALIZED VIEW v AS
SELECT tag, count(*) AS n FROM orders LATERAL VIEW explode(tags) t AS tag GROUP BY ROLLUP (tag)
-- view: v, 0 us
-- from: orders
-- generate: tag = explode(tags)
-- generate: _grouping_id = explode(array(0L, 1L))
-- window: none
-- key: key_0 = case when (_grouping_id & 1L) = 0L then tag end
-- key: key_1 = _grouping_id
-- call: call_0 = count()
-- output: tag = key_0
-- output: n = call_0

-- case: GROUP BY ALL
CREATE MATERIALIZED VIEW v AS
SELECT upper(shop) AS s, id, 'x' AS x, count(*) + 1 AS n FROM orders GROUP BY ALL
-- view: v, 0 us
-- from: orders
-- window: none
-- key: key_0 = upper(shop)
-- key: key_1 = id
-- call: call_0 = count()
-- output: s = key_0
-- output: id = key_1
-- output: x = 'x'
-- output: n = call_0 + 1

-- case: GROUP BY ALL without aggregates
CREATE MATERIALIZED VIEW v AS
SELECT shop, id FROM orders GROUP BY ALL
-- view: v, 0 us
-- from: orders
-- window: none
-- key: key_0 = shop
-- key: key_1 = id
-- output: shop = key_0
-- output: id = key_1

-- case: structs, arrays and maps as keys
CREATE MATERIALIZED VIEW v AS
SELECT buyer, tags, count(*) AS n FROM orders GROUP BY buyer, tags
-- view: v, 0 us
-- from: orders
-- window: none
-- key: key_0 = buyer
-- key: key_1 = tags
-- call: call_0 = count()
-- output: buyer = key_0
-- output: tags = key_1
-- output: n = call_0
