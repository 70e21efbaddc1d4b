-- case: a key of one column; the format is upsert, and the topic bears the table's name
CREATE TABLE cards (card STRING PRIMARY KEY, holder STRING, limits ARRAY<INT> NOT NULL);
-- table: cards (card STRING NOT NULL, holder STRING, limits ARRAY<INT> NOT NULL) from cards, key card from key, upsert
-- view: cards, 0 us
-- from: changes of cards
-- window: none
-- key: key_0 = card
-- call: call_0 = last(named_struct('gone', _deleted, 'c0', holder, 'c1', limits))
-- call: call_1 = min(_partition)
-- call: call_2 = max(_partition)
-- having: not call_0.gone
-- output: card = key_0
-- output: holder = call_0.c0
-- output: limits = call_0.c1

-- case: a key of two columns, from the value; what is written NOT NULL already may say so
CREATE TABLE rates (
  Base STRING NOT NULL, quote STRING, rate DECIMAL(18,8), at TIMESTAMP NOT NULL FORMAT 'millis',
  PRIMARY KEY (quote, base), WATERMARK FOR at AS at - INTERVAL 1 SECOND
) WITH (topic = 'fx', format = 'UPSERT', key_from = 'value', timestamp_format = 'seconds');
-- table: rates (Base STRING NOT NULL, quote STRING NOT NULL, rate DECIMAL(18,8), at TIMESTAMP NOT NULL in millis) from fx, time at - 1000000 us, key quote, Base from value, upsert
-- view: rates, 0 us
-- from: changes of rates
-- window: none
-- key: key_0 = quote
-- key: key_1 = Base
-- call: call_0 = last(named_struct('gone', _deleted, 'c0', rate, 'c1', at))
-- call: call_1 = min(_partition)
-- call: call_2 = max(_partition)
-- having: not call_0.gone
-- output: Base = key_1
-- output: quote = key_0
-- output: rate = call_0.c0
-- output: at = call_0.c1

-- case: as Flink writes it, and with places of values
CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED, city STRING FROM '$.address.city');
-- table: t (id INT NOT NULL, city STRING at ['address', 'city']) from t, key id from key, upsert
-- view: t, 0 us
-- from: changes of t
-- window: none
-- key: key_0 = id
-- call: call_0 = last(named_struct('gone', _deleted, 'c0', city))
-- call: call_1 = min(_partition)
-- call: call_2 = max(_partition)
-- having: not call_0.gone
-- output: id = key_0
-- output: city = call_0.c0

-- case: Flink's other way
CREATE TABLE t (id INT NOT NULL, PRIMARY KEY (id) NOT ENFORCED);
-- table: t (id INT NOT NULL) from t, key id from key, upsert
-- view: t, 0 us
-- from: changes of t
-- window: none
-- key: key_0 = id
-- call: call_0 = last(named_struct('gone', _deleted))
-- call: call_1 = min(_partition)
-- call: call_2 = max(_partition)
-- having: not call_0.gone
-- output: id = key_0

-- case: a sink of a table
CREATE TABLE t (id INT PRIMARY KEY); CREATE SINK s FROM t WITH (topic = 'out');
-- table: t (id INT NOT NULL) from t, key id from key, upsert
-- view: t, 0 us
-- from: changes of t
-- window: none
-- key: key_0 = id
-- call: call_0 = last(named_struct('gone', _deleted))
-- call: call_1 = min(_partition)
-- call: call_2 = max(_partition)
-- having: not call_0.gone
-- output: id = key_0
-- sink: s of t to out, upsert

-- case: a table reads what a sink of the project writes
CREATE MATERIALIZED VIEW v AS SELECT id, count(*) AS n FROM payments GROUP BY id;
CREATE SINK s FROM v WITH (topic = 'counts');
CREATE TABLE counts (id STRING PRIMARY KEY, n BIGINT);
-- table: counts (id STRING NOT NULL, n BIGINT) from counts, key id from key, upsert
-- view: counts, 0 us
-- from: changes of counts
-- window: none
-- key: key_0 = id
-- call: call_0 = last(named_struct('gone', _deleted, 'c0', n))
-- call: call_1 = min(_partition)
-- call: call_2 = max(_partition)
-- having: not call_0.gone
-- output: id = key_0
-- output: n = call_0.c0
-- view: v, 0 us
-- from: payments
-- window: none
-- key: key_0 = id
-- call: call_0 = count()
-- output: id = key_0
-- output: n = call_0
-- sink: s of v to counts, upsert

-- case: change events; columns whose values may not be sent are states of their own
CREATE TABLE bought (id INT PRIMARY KEY, `it's` STRING, amount DECIMAL(10,2) FROM '$.a.amount', at TIMESTAMP)
WITH (topic = 'shop.public.orders', format = 'debezium', decimal_format = 'BASE64', source_table = 'public.orders');
-- table: bought (id INT NOT NULL, it's STRING, amount DECIMAL(10,2) at ['a', 'amount'], at TIMESTAMP) from shop.public.orders, key id from key, debezium
-- view: bought, 0 us
-- from: changes of bought
-- window: none
-- key: key_0 = id
-- call: call_0 = last(named_struct('gone', _deleted, 'c0', amount, 'c1', at))
-- call: call_1 = min(_partition)
-- call: call_2 = max(_partition)
-- call: call_3 = last(it's), where not coalesce(array_contains(_unsent, 'it\'s'), false)
-- having: not call_0.gone
-- output: id = key_0
-- output: it's = call_3
-- output: amount = call_0.c0
-- output: at = call_0.c1
