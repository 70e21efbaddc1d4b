-- case: a stream with a watermark and options
CREATE STREAM clicks (ts TIMESTAMP NOT NULL, page STRING, WATERMARK FOR ts AS ts - INTERVAL 5 MINUTES)
WITH (topic = 'web.clicks', format = 'json', key = 'page', timestamp_format = 'millis');
-- stream: clicks (ts TIMESTAMP NOT NULL, page STRING) from web.clicks, time ts - 300000000 us, key page, timestamps millis

-- case: the topic is the stream's name by default, and a watermark without a delay waits for nothing
CREATE STREAM clicks (ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts)
-- stream: clicks (ts TIMESTAMP NOT NULL) from clicks, time ts - 0 us, key None, timestamps None

-- case: comments may stand anywhere, and a semicolon within quotes or comments ends nothing
-- first; comment
CREATE /* a; b */ STREAM clicks ( -- columns;
  page STRING /* NOT NULL */, -- last
  n INT NOT NULL
)
WITH (topic = 'a-b');;
/* the end */
-- stream: clicks (page STRING, n INT NOT NULL) from a-b, key None, timestamps None

-- case: types nest, and names of columns and options are found in any case
create stream Clicks (Ts timestamp not null, m map<string, array<int>>, s struct<a: int, b: struct<c: decimal(10, 2)>>,
watermark for TS as ts - interval '1 hour 30 minutes') with (KEY = 'TS')
-- stream: Clicks (Ts TIMESTAMP NOT NULL, m MAP<STRING, ARRAY<INT>>, s STRUCT<a: INT, b: STRUCT<c: DECIMAL(10,2)>>) from Clicks, time Ts - 5400000000 us, key Ts, timestamps None

-- case: a quoted name may be a keyword
CREATE STREAM `order` (`select` INT, `from` STRING)
-- stream: order (select INT, from STRING) from order, key None, timestamps None

-- case: a delay may be written as a text, a number or several parts
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t - INTERVAL '10' SECONDS);
CREATE STREAM b (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t - INTERVAL 1 DAY 2 HOURS);
-- stream: a (t TIMESTAMP NOT NULL) from a, time t - 10000000 us, key None, timestamps None
-- stream: b (t TIMESTAMP NOT NULL) from b, time t - 93600000000 us, key None, timestamps None

-- case: an adaptive watermark and an idle timeout
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES))
WITH (idle_timeout = '30 seconds')
-- stream: a (t TIMESTAMP NOT NULL) from a, time t - 300000000 us, key None, timestamps None

-- case: types as other systems write them
CREATE STREAM a (t TIMESTAMP(3) NOT NULL, u TIMESTAMP_LTZ(9), v TIMESTAMP(3) WITH LOCAL TIME ZONE, w VARCHAR(20),
  x CHAR(2) NULL, y TEXT, z INTEGER, d DOUBLE PRECISION, n NUMERIC(8, 2), b BYTES, r ROW<p INT, q VARCHAR(3)>)
-- stream: a (t TIMESTAMP NOT NULL, u TIMESTAMP, v TIMESTAMP, w STRING, x STRING, y STRING, z INT, d DOUBLE, n DECIMAL(8,2), b BINARY, r STRUCT<p: INT, q: STRING>) from a, key None, timestamps None

-- case: NOT NULL within types
CREATE STREAM a (s STRUCT<x: INT NOT NULL, y STRING> NOT NULL, l ARRAY<STRUCT<z BIGINT NOT NULL> NOT NULL>,
  m MAP<STRING, ARRAY<INT NOT NULL> NOT NULL>)
-- stream: a (s STRUCT<x: INT NOT NULL, y: STRING> NOT NULL, l ARRAY<STRUCT<z: BIGINT NOT NULL> NOT NULL>, m MAP<STRING, ARRAY<INT NOT NULL> NOT NULL>) from a, key None, timestamps None

-- case: keys and paths other than the column's name
CREATE STREAM a (raw STRING FROM '@timestamp', ts TIMESTAMP FROM '$.meta.ts' NOT NULL, price DECIMAL(8,2) NOT NULL FROM '$.items[0].price',
  again STRING FROM '@timestamp', quoted INT FROM "$['a key'].b", own INT FROM 'own', same INT FROM '$.same', WATERMARK FOR ts AS ts)
-- stream: a (raw STRING at ['@timestamp'], ts TIMESTAMP NOT NULL at ['meta', 'ts'], price DECIMAL(8,2) NOT NULL at ['items', 0, 'price'], again STRING at ['@timestamp'], quoted INT at ['a key', 'b'], own INT, same INT) from a, time ts - 0 us, key None, timestamps None

-- case: a format for each column
CREATE STREAM a (t TIMESTAMP FORMAT 'millis', u TIMESTAMP FROM '@u' FORMAT 'ISO8601' NOT NULL, v ARRAY<TIMESTAMP> NOT NULL FORMAT 'seconds', `format` INT, `from` INT)
WITH (timestamp_format = 'micros')
-- stream: a (t TIMESTAMP in millis, u TIMESTAMP NOT NULL at ['@u'] in iso8601, v ARRAY<TIMESTAMP> NOT NULL in seconds, format INT, from INT) from a, key None, timestamps micros

-- case: the default format may be said
CREATE STREAM a (t TIMESTAMP) WITH (timestamp_format = 'iso8601')
-- stream: a (t TIMESTAMP) from a, key None, timestamps None

-- case: the event time is when the log took a record
CREATE STREAM a (x INT, WATERMARK FOR _ARRIVAL AS _arrival - INTERVAL 5 SECONDS);
CREATE MATERIALIZED VIEW v AS SELECT window.start AS minute, count(*) AS n FROM a GROUP BY window(_arrival, '1 minute')
-- stream: a (x INT) from a, time _arrival - 5000000 us, key None, timestamps None
-- view: v, 0 us
-- from: a
-- window: 60000000 us
-- call: call_0 = count()
-- output: minute = _window_start
-- output: n = call_0
