-- case: an event time that is computed
CREATE STREAM requests (
  raw_time STRING FROM '@timestamp',
  ts TIMESTAMP AS to_timestamp(raw_time, 'dd/MMM/yyyy:HH:mm:ss Z'),
  path STRING, status INT,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
);
CREATE MATERIALIZED VIEW hits AS SELECT window.start AS minute, count(*) AS n FROM requests WHERE status < 400 GROUP BY window(ts, '1 minute')
-- stream: requests (raw_time STRING at ['@timestamp'], path STRING, status INT, ts TIMESTAMP as cast(to_timestamp(raw_time, 'dd/MMM/yyyy:HH:mm:ss Z') as timestamp) after 1) from requests, time ts - 5000000 us, key None, timestamps None
-- view: hits, 0 us
-- from: requests
-- where: status < 400
-- window: 60000000 us
-- call: call_0 = count()
-- output: minute = _window_start
-- output: n = call_0

-- case: computed columns, with and without a type, over others and over each other
CREATE STREAM items (
  total DECIMAL(12,2) AS CAST(qty * price AS DECIMAL(12,2)), qty INT, Price DECIMAL(8,2),
  half AS total / 2, cheap AS price < 1 AND qty > 2, `select` STRING AS concat(`from`, ','), `from` STRING
);
CREATE MATERIALIZED VIEW large AS SELECT * FROM items WHERE total > 100
-- stream: items (qty INT, Price DECIMAL(8,2), from STRING, total DECIMAL(12,2) as cast(cast(qty * Price as decimal(12, 2)) as decimal(12,2)) after 0, half  as (cast(cast(qty * Price as decimal(12, 2)) as decimal(12,2))) / 2 after 2, cheap  as Price < 1 and qty > 2 after 2, select STRING as cast(concat(from, ',') as string) after 2) from items, key None, timestamps None
-- view: large, 0 us
-- from: items
-- output: total = cast(cast(qty * Price as decimal(12, 2)) as decimal(12,2))
-- output: qty = qty
-- output: Price = Price
-- output: half = (cast(cast(qty * Price as decimal(12, 2)) as decimal(12,2))) / 2
-- output: cheap = Price < 1 and qty > 2
-- output: select = cast(concat(from, ',') as string)
-- output: from = from
-- output: _topic = _topic
-- output: _partition = _partition
-- output: _offset = _offset
-- output: _arrival = _arrival
-- output: _key = _key
-- output: _headers = _headers
-- where: total > 100
-- output: total = total
-- output: qty = qty
-- output: Price = Price
-- output: half = half
-- output: cheap = cheap
-- output: select = select
-- output: from = from

-- case: a view names a computed column in any case, and fields of what it gives
CREATE STREAM items (text STRING, parsed AS from_json(text, 'a INT, B STRING'));
CREATE MATERIALIZED VIEW v AS SELECT PARSED.B AS b, items.parsed.a AS a FROM items
-- stream: items (text STRING, parsed  as from_json(text, 'a INT, B STRING') after 1) from items, key None, timestamps None
-- view: v, 0 us
-- from: items
-- output: text = text
-- output: parsed = from_json(text, 'a INT, B STRING')
-- output: _topic = _topic
-- output: _partition = _partition
-- output: _offset = _offset
-- output: _arrival = _arrival
-- output: _key = _key
-- output: _headers = _headers
-- output: b = parsed.B
-- output: a = parsed.a

-- case: a unique id that is computed
CREATE STREAM items (a INT, b INT, id STRING AS concat(a, '-', b), t TIMESTAMP NOT NULL, n AS a + 1, WATERMARK FOR t AS t)
WITH (unique = 'ID', unique_within = '1 hour');
CREATE MATERIALIZED VIEW v AS SELECT id, n FROM items
-- stream: items (a INT, b INT, t TIMESTAMP NOT NULL, id STRING as cast(concat(a, '-', b) as string) after 2, n  as a + 1 after 3) from items, time t - 0 us, key None, timestamps None, unique id 3600000000 us drop
-- view: v, 0 us
-- from: items without duplicates by id within 3600000000 us
-- output: a = a
-- output: b = b
-- output: id = id
-- output: t = t
-- output: n = a + 1
-- output: _topic = _topic
-- output: _partition = _partition
-- output: _offset = _offset
-- output: _arrival = _arrival
-- output: _key = _key
-- output: _headers = _headers
-- output: _watermark = _watermark
-- output: id = id
-- output: n = n

-- case: a computed column may use the record's own, and a view sees both
CREATE STREAM items (a INT, shop AS CAST(_key AS STRING), WATERMARK FOR _arrival AS _arrival);
CREATE MATERIALIZED VIEW v AS SELECT shop, _offset AS place FROM items WHERE _partition = 0
-- stream: items (a INT, shop  as cast(_key as string) after 1) from items, time _arrival - 0 us, key None, timestamps None
-- view: v, 0 us
-- from: items
-- output: a = a
-- output: shop = cast(_key as string)
-- output: _topic = _topic
-- output: _partition = _partition
-- output: _offset = _offset
-- output: _arrival = _arrival
-- output: _key = _key
-- output: _headers = _headers
-- output: _watermark = _watermark
-- where: _partition = 0
-- output: shop = shop
-- output: place = _offset
