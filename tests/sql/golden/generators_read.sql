-- case: a generator of the select list stands after WHERE
CREATE MATERIALIZED VIEW v AS
SELECT explode(tags) AS tag, id FROM orders WHERE shop = 'a'
-- view: v, 0 us
-- from: orders
-- where: shop = 'a'
-- generate: tag = explode(tags)
-- output: tag = tag
-- output: id = id

-- case: with its number, under two names
CREATE MATERIALIZED VIEW v AS
SELECT posexplode(tags) AS (i, v) FROM orders
-- view: v, 0 us
-- from: orders
-- generate: i, v = posexplode(tags)
-- output: i = i
-- output: v = v

-- case: names as Spark gives them, and rows that are kept
CREATE MATERIALIZED VIEW v AS
SELECT posexplode_outer(tags), id FROM orders
-- view: v, 0 us
-- from: orders
-- generate: pos, col = posexplode(tags), outer
-- output: pos = pos
-- output: col = col
-- output: id = id

-- case: a map has keys and values
CREATE MATERIALIZED VIEW v AS
SELECT explode(prices) FROM orders
-- view: v, 0 us
-- from: orders
-- generate: key, value = explode(prices)
-- output: key = key
-- output: value = value

-- case: the number of an entry, its key and its value
CREATE MATERIALIZED VIEW v AS
SELECT posexplode(prices) FROM orders
-- view: v, 0 us
-- from: orders
-- generate: pos, key, value = posexplode(prices)
-- output: pos = pos
-- output: key = key
-- output: value = value

-- case: the fields of structs
CREATE MATERIALIZED VIEW v AS
SELECT inline(lines), id FROM orders
-- view: v, 0 us
-- from: orders
-- generate: sku, qty = inline(lines)
-- output: sku = sku
-- output: qty = qty
-- output: id = id

-- case: a column may have the name of the one that it is made of
CREATE MATERIALIZED VIEW v AS
SELECT explode(tags) AS tags, id FROM orders
-- view: v, 0 us
-- from: orders
-- generate: _tags_1 = explode(tags)
-- output: tags = _tags_1
-- output: id = id

-- case: the different elements
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT explode(tags) AS tag FROM orders
-- view: v, 0 us
-- from: orders
-- generate: tag = explode(tags)
-- window: none
-- key: key_0 = tag
-- output: tag = key_0

-- case: groups by element
CREATE MATERIALIZED VIEW v AS
SELECT tag, count(*) AS n FROM orders LATERAL VIEW explode(tags) t AS tag WHERE shop = 'a' GROUP BY tag
-- view: v, 0 us
-- from: orders
-- generate: tag = explode(tags)
-- where: shop = 'a'
-- window: none
-- key: key_0 = tag
-- call: call_0 = count()
-- output: tag = key_0
-- output: n = call_0

-- case: windows of elements
CREATE MATERIALIZED VIEW v AS
SELECT window.start AS s, t.tag, count(*) AS n FROM orders LATERAL VIEW OUTER explode(tags) t AS tag GROUP BY window(ts, '1 minute'), t.tag
-- view: v, 0 us
-- from: orders
-- generate: tag = explode(tags), outer
-- window: 60000000 us
-- key: key_0 = tag
-- call: call_0 = count()
-- output: s = _window_start
-- output: tag = key_0
-- output: n = call_0

-- case: one after the other, each over the ones before
CREATE MATERIALIZED VIEW v AS
SELECT orders.id AS order_id, t.id, letter FROM orders LATERAL VIEW posexplode(tags) t AS i, id LATERAL VIEW explode(split(t.id, '')) u AS letter WHERE i > 0
-- view: v, 0 us
-- from: orders
-- generate: i, _id_1 = posexplode(tags)
-- generate: letter = explode(split(_id_1, ''))
-- where: i > 0
-- output: order_id = id
-- output: id = _id_1
-- output: letter = letter

-- case: a star stands for what lateral views make
CREATE MATERIALIZED VIEW v AS
SELECT * EXCEPT (tags, prices, lines, buyer, body, ts) FROM orders LATERAL VIEW inline(lines) l
-- view: v, 0 us
-- from: orders
-- generate: sku, qty = inline(lines)
-- output: id = id
-- output: shop = shop
-- output: sku = sku
-- output: qty = qty

-- case: the columns of one lateral view
CREATE MATERIALIZED VIEW v AS
SELECT t.*, id FROM orders LATERAL VIEW posexplode(tags) t
-- view: v, 0 us
-- from: orders
-- generate: pos, col = posexplode(tags)
-- output: pos = pos
-- output: col = col
-- output: id = id

-- case: fields of elements have their type
CREATE MATERIALIZED VIEW v AS
SELECT item.SKU FROM orders LATERAL VIEW explode(lines) t AS item
-- view: v, 0 us
-- from: orders
-- generate: item = explode(lines)
-- output: SKU = item.sku

-- case: elements of a function's value
CREATE MATERIALIZED VIEW v AS
SELECT explode(from_json(body, 'array<string>')) AS b FROM orders
-- view: v, 0 us
-- from: orders
-- generate: b = explode(from_json(body, 'array<string>'))
-- output: b = b

-- case: a map that a function makes
CREATE MATERIALIZED VIEW v AS
SELECT explode(map_filter(prices, (k, v) -> v > 1)) FROM orders
-- view: v, 0 us
-- from: orders
-- generate: key, value = explode(map_filter(prices, (k, v) -> v > 1))
-- output: key = key
-- output: value = value

-- case: structs of a function's value
CREATE MATERIALIZED VIEW v AS
SELECT inline(from_json(body, 'array<struct<a: int, b: int>>')) AS (a, b) FROM orders
-- view: v, 0 us
-- from: orders
-- generate: a, b = inline(from_json(body, 'array<struct<a: int, b: int>>'))
-- output: a = a
-- output: b = b

-- case: LATERAL after a comma
CREATE MATERIALIZED VIEW v AS
SELECT t.c FROM orders, LATERAL explode(tags) AS t(c)
-- view: v, 0 us
-- from: orders
-- generate: c = explode(tags)
-- output: c = c

-- case: CROSS JOIN LATERAL and a second one
CREATE MATERIALIZED VIEW v AS
SELECT c, k, value FROM orders CROSS JOIN LATERAL explode(tags) t(c) LATERAL VIEW explode(prices) p AS k, value
-- view: v, 0 us
-- from: orders
-- generate: c = explode(tags)
-- generate: k, value = explode(prices)
-- output: c = c
-- output: k = k
-- output: value = value

-- case: LEFT JOIN LATERAL keeps rows
CREATE MATERIALIZED VIEW v AS
SELECT c FROM orders LEFT JOIN LATERAL explode(tags) t(c) ON TRUE
-- view: v, 0 us
-- from: orders
-- generate: c = explode(tags), outer
-- output: c = c

-- case: UNNEST is explode
CREATE MATERIALIZED VIEW v AS
SELECT o.id, t.tag FROM orders o CROSS JOIN UNNEST(o.tags) AS t(tag)
-- view: v, 0 us
-- from: orders
-- generate: tag = explode(tags)
-- output: id = id
-- output: tag = tag

-- case: UNNEST of structs is inline
CREATE MATERIALIZED VIEW v AS
SELECT sku, qty FROM orders CROSS JOIN UNNEST(lines) AS t(sku, qty)
-- view: v, 0 us
-- from: orders
-- generate: sku, qty = inline(lines)
-- output: sku = sku
-- output: qty = qty

-- case: UNNEST of structs under one name is explode
CREATE MATERIALIZED VIEW v AS
SELECT line.sku FROM orders CROSS JOIN UNNEST(lines) AS t(line)
-- view: v, 0 us
-- from: orders
-- generate: line = explode(lines)
-- output: sku = line.sku

-- case: unnest in the select list
CREATE MATERIALIZED VIEW v AS
SELECT unnest(tags) AS tag FROM orders
-- view: v, 0 us
-- from: orders
-- generate: tag = explode(tags)
-- output: tag = tag

-- case: of a query within another
CREATE MATERIALIZED VIEW v AS
SELECT upper(tag) AS tag, count(*) AS n FROM (SELECT explode(tags) AS tag FROM orders WHERE shop <> '') GROUP BY upper(tag)
-- view: v, 0 us
-- from: orders
-- where: shop <> ''
-- generate: tag = explode(tags)
-- output: tag = tag
-- window: none
-- key: key_0 = upper(tag)
-- call: call_0 = count()
-- output: tag = key_0
-- output: n = call_0

-- case: over a query, whose types pass through
CREATE MATERIALIZED VIEW v AS
SELECT sku, n FROM (SELECT lines AS l, id AS n FROM orders) q LATERAL VIEW inline(l)
-- view: v, 0 us
-- from: orders
-- output: l = lines
-- output: n = id
-- generate: sku, qty = inline(l)
-- output: sku = sku
-- output: n = n

-- case: distinct rows of a union
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT name FROM (SELECT id AS name FROM orders UNION ALL SELECT explode(tags) AS name FROM payments)
-- view: v, 0 us
-- branch: 0
-- from: orders
-- output: name = id
-- branch: 1
-- from: payments
-- generate: name = explode(tags)
-- output: name = name
-- union: of 2
-- window: none
-- key: key_0 = name
-- output: name = key_0

-- case: an alias of UNNEST names its single column
CREATE MATERIALIZED VIEW v AS
SELECT id, tag FROM orders CROSS JOIN UNNEST(tags) AS tag
-- view: v, 0 us
-- from: orders
-- generate: tag = explode(tags)
-- output: id = id
-- output: tag = tag
