-- case: DISTINCT is groups by what is selected
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT shop, upper(id) AS id FROM orders WHERE shop <> ''
-- view: v, 0 us
-- from: orders
-- where: shop <> ''
-- window: none
-- key: key_0 = shop
-- key: key_1 = upper(id)
-- output: shop = key_0
-- output: id = key_1

-- case: of two equal columns DISTINCT makes one key, of a literal none
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT shop, 'x' AS x, shop AS again FROM orders
-- view: v, 0 us
-- from: orders
-- window: none
-- key: key_0 = shop
-- output: shop = key_0
-- output: x = 'x'
-- output: again = key_0

-- case: DISTINCT over all columns
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT * EXCEPT (tags, prices, lines, buyer, body, ts) FROM orders
-- view: v, 0 us
-- from: orders
-- window: none
-- key: key_0 = id
-- key: key_1 = shop
-- output: id = key_0
-- output: shop = key_1

-- case: DISTINCT over groups that are told apart anyway
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT shop, window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, '1 minute'), shop
-- view: v, 0 us
-- from: orders
-- window: 60000000 us
-- key: key_0 = shop
-- call: call_0 = count()
-- output: shop = key_0
-- output: s = _window_start
-- output: n = call_0

-- case: a group without calls
CREATE MATERIALIZED VIEW v AS
SELECT shop FROM orders GROUP BY shop
-- view: v, 0 us
-- from: orders
-- window: none
-- key: key_0 = shop
-- output: shop = key_0

-- case: a star without some columns
CREATE MATERIALIZED VIEW v AS
SELECT o.* EXCEPT (tags, PRICES, lines, buyer) FROM orders o
-- view: v, 0 us
-- from: orders
-- output: id = id
-- output: shop = shop
-- output: body = body
-- output: ts = ts

-- case: the fields of a struct
CREATE MATERIALIZED VIEW v AS
SELECT buyer.*, orders.buyer.home.* FROM orders
-- view: v, 0 us
-- from: orders
-- output: Name = buyer.name
-- output: home = buyer.home
-- output: city = buyer.home.city

-- case: the record's own columns
CREATE MATERIALIZED VIEW v AS
SELECT id, _topic AS topic, _partition AS part, orders._offset AS o, _arrival AS came, _key AS k, _headers[0].value AS h FROM orders
-- view: v, 0 us
-- from: orders
-- output: id = id
-- output: topic = _topic
-- output: part = _partition
-- output: o = _offset
-- output: came = _arrival
-- output: k = _key
-- output: h = _headers[0].value

-- case: no star stands for the record's own columns
CREATE MATERIALIZED VIEW v AS
SELECT * FROM notes
-- view: v, 0 us
-- from: notes
-- output: text = text

-- case: groups by the record's own columns
CREATE MATERIALIZED VIEW v AS
SELECT _partition AS part, max(_offset) AS newest FROM orders GROUP BY _partition
-- view: v, 0 us
-- from: orders
-- window: none
-- key: key_0 = _partition
-- call: call_0 = max(_offset)
-- output: part = key_0
-- output: newest = call_0
