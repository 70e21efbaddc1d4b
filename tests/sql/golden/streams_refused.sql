-- case: an unknown option suggests the closest
CREATE STREAM a (x INT) WITH (topc = 'x')
-- error: case.sql:1:31: CREATE STREAM has no option topc (did you mean topic?); its options are topic, format, key, timestamp_format, idle_timeout, unique, unique_within, duplicates

-- case: options that are not built yet
CREATE STREAM a (x INT) WITH (versioned = 'true')
-- error: case.sql:1:31: option versioned is not built yet: there are no tables yet; remove it

-- case: an option stands twice
CREATE STREAM a (x INT) WITH (topic = 'a', TOPIC = 'b')
-- error: case.sql:1:44: option topic occurs twice; keep one

-- case: an option without quotes
CREATE STREAM a (x INT) WITH (topic = a)
-- error: case.sql:1:39: the value of option topic is written in quotes: topic = '...'

-- case: an option without a value
CREATE STREAM a (x INT) WITH (topic)
-- error: case.sql:1:31: option topic has no value; write topic = '...'

-- case: an option is missing
CREATE STREAM a (x INT) WITH (topic = 'a',)
-- error: case.sql:1:43: an option is missing in WITH (...); write WITH (name = 'value', ...)

-- case: another format
CREATE STREAM a (x INT) WITH (format = 'avro')
-- error: case.sql:1:40: format 'avro' is not built yet; write format = 'json' or 'debezium'

-- case: another timestamp format
CREATE STREAM a (x INT) WITH (timestamp_format = 'nanos')
-- error: case.sql:1:50: timestamp_format 'nanos' is not known; write 'seconds', 'millis' or 'micros' (since 1970), or leave it out for ISO 8601

-- case: a topic that Kafka refuses
CREATE STREAM a (x INT) WITH (topic = 'a b')
-- error: case.sql:1:39: topic 'a b': a topic has 1 to 249 letters, digits, dots, underscores and dashes

-- case: a topic of the engine
CREATE STREAM a (x INT) WITH (topic = 'headrace.time')
-- error: case.sql:1:39: topic headrace.time: topics that start with headrace. are reserved for the engine; choose another

-- case: the stream's own dead letters
CREATE STREAM a (x INT) WITH (topic = 'a.dead')
-- error: case.sql:1:1: stream a reads a.dead, a side topic of this project: the records that are put aside there would come back; read it from another project

-- case: an empty topic
CREATE STREAM a (x INT) WITH (topic = '')
-- error: case.sql:1:39: topic '': a topic has 1 to 249 letters, digits, dots, underscores and dashes

-- case: a key that is no column
CREATE STREAM a (xyz INT) WITH (key = 'xy')
-- error: case.sql:1:39: key 'xy' is not a column of a (did you mean xyz?)

-- case: a type that is none
CREATE STREAM a (x INTT, y STRING)
-- error: case.sql:1:20: column x: there is no type INTT; the types are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, STRING, BINARY, DATE, TIMESTAMP, ARRAY, MAP, STRUCT

-- case: a type of another database
CREATE STREAM a (x UUID);
CREATE STREAM b (x VARCHAR(0));
CREATE STREAM c (x TIMESTAMP(12) NOT NULL);
CREATE STREAM d (x STRUCT<y: INT NOT NULLABLE>);
-- error: case.sql:1:20: column x: UUID is not a type of Headrace: write STRING
-- error: case.sql:2:20: column x: VARCHAR(0) is not a type; write 1 to 2147483647, or STRING
-- error: case.sql:3:20: column x: TIMESTAMP(12) is not a type; write 0 to 9, or TIMESTAMP
-- error: case.sql:4:20: column x: 'STRUCT < y : INT NOT NULLABLE >' is not a type: NULL is missing after NOT

-- case: a column without a type
CREATE STREAM a (x, y INT)
-- error: case.sql:1:18: column x has no type; write x TYPE

-- case: a column stands twice
CREATE STREAM a (x INT, X STRING)
-- error: case.sql:1:25: column X occurs twice (names are not case-sensitive); rename one

-- case: a reserved column
CREATE STREAM a (_closed BOOLEAN)
-- error: case.sql:1:18: column name _closed: names that start with _ are reserved; drop the underscore

-- case: constraints that are not supported
CREATE STREAM a (x INT PRIMARY KEY, y INT DEFAULT 3, z INT NOT NULL UNIQUE)
-- error: case.sql:1:24: column x: PRIMARY KEY is not supported; write key = 'x' in WITH (...)
-- error: case.sql:1:43: column y: DEFAULT is not supported; after the type only FROM, FORMAT, NOT NULL and AS may stand
-- error: case.sql:1:69: column z: UNIQUE is not supported; write unique = 'z' in WITH (...)

-- case: no columns
CREATE STREAM a ()
-- error: case.sql:1:15: stream a has no columns; write (column TYPE, ...)

-- case: a comma too many
CREATE STREAM a (x INT,)
-- error: case.sql:1:15: there is an empty column in a; remove the extra comma

-- case: no parentheses
CREATE STREAM a WITH (topic = 'a')
-- error: case.sql:1:17: stream a has no columns; write CREATE STREAM a (column TYPE, ...) WITH (...)

-- case: parentheses without an end
CREATE STREAM a (x INT
-- error: case.sql:1:17: ( is never closed

-- case: parentheses that do not match
CREATE STREAM a (x INT]
-- error: case.sql:1:23: ] closes a (; write ) first

-- case: reserved names
CREATE STREAM headrace_log (x INT);
CREATE STREAM _a (x INT);
-- error: case.sql:1:15: stream name headrace_log: names that start with headrace are reserved; choose another
-- error: case.sql:2:15: stream name _a: names that start with _ are reserved; drop the underscore

-- case: a name that is too long
CREATE STREAM aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (x INT)
-- error: case.sql:1:15: stream name 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' has 64 characters; at most 63 are allowed

-- case: no name
CREATE STREAM (x INT)
-- error: case.sql:1:15: the name of the stream is expected here, not (

-- case: a name that is taken
CREATE STREAM Payments (x INT)
-- error: case.sql:1:1: Payments is defined at streams.sql:1:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one

-- case: a view with the name of a stream
CREATE MATERIALIZED VIEW notes AS SELECT text FROM notes
-- error: case.sql:1:1: notes is defined at streams.sql:8:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one

-- case: a watermark on an unknown column
CREATE STREAM a (time TIMESTAMP NOT NULL, WATERMARK FOR tme AS tme)
-- error: case.sql:1:57: WATERMARK FOR tme: a has no such column (did you mean time?)

-- case: a watermark on another type
CREATE STREAM a (t BIGINT NOT NULL, WATERMARK FOR t AS t)
-- error: case.sql:1:51: WATERMARK FOR t: the event time must be a TIMESTAMP, not BIGINT; write t TIMESTAMP NOT NULL

-- case: a watermark on a column that may be null
CREATE STREAM a (t TIMESTAMP,
  WATERMARK FOR t AS t - INTERVAL 1 SECOND)
-- error: case.sql:2:17: WATERMARK FOR t: a record without an event time has no place in time; write t TIMESTAMP NOT NULL

-- case: idle timeouts that mean nothing
CREATE STREAM a (x INT) WITH (idle_timeout = '0 seconds');
CREATE STREAM b (x INT) WITH (idle_timeout = 'soon');
CREATE STREAM c (x INT) WITH (idle_timeout = '-1 minute')
-- error: case.sql:1:46: idle_timeout must be positive: otherwise every pause would count as idle; write '1 minute'
-- error: case.sql:2:46: idle_timeout: 'soon' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'
-- error: case.sql:3:46: idle_timeout: '-1 minute' is negative; write 0 or more

-- case: an adaptive watermark with a share in quotes
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE ('0.5', MAX INTERVAL 5 MINUTES))
-- error: case.sql:1:69: the share is written without quotes; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay

-- case: an adaptive watermark that says nothing
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE)
-- error: case.sql:1:59: ADAPTIVE needs a share and a longest delay; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay

-- case: an adaptive watermark with one value
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (0.9))
-- error: case.sql:1:59: ADAPTIVE takes two values; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay

-- case: shares that are none
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (1, MAX INTERVAL 5 MINUTES));
CREATE STREAM b (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (-0.5, MAX INTERVAL 5 MINUTES));
CREATE STREAM c (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (much, MAX INTERVAL 5 MINUTES));
CREATE STREAM d (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (0.99999999999999999999, MAX INTERVAL 5 MINUTES));
CREATE STREAM e (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (NaN, MAX INTERVAL 5 MINUTES));
CREATE STREAM f (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (sNaN, MAX INTERVAL 5 MINUTES))
-- error: case.sql:1:69: the share is a number between 0 and 1, and rounds to neither; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay
-- error: case.sql:2:69: the share is a number between 0 and 1, and rounds to neither; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay
-- error: case.sql:3:69: the share is a number between 0 and 1, and rounds to neither; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay
-- error: case.sql:4:69: the share is a number between 0 and 1, and rounds to neither; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay
-- error: case.sql:5:69: the share is a number between 0 and 1, and rounds to neither; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay
-- error: case.sql:6:69: the share is a number between 0 and 1, and rounds to neither; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay

-- case: an adaptive watermark without its longest delay
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (0.99, INTERVAL 5 MINUTES));
CREATE STREAM b (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (0.99, MAX 5 MINUTES));
CREATE STREAM c (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (0.99, MAX INTERVAL 0 SECONDS));
CREATE STREAM d (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (0.99, MAX INTERVAL 1 MONTH));
CREATE STREAM e (t TIMESTAMP NOT NULL, WATERMARK FOR t AS ADAPTIVE (0.99, MAX INTERVAL 1 DAY) - 1)
-- error: case.sql:1:75: MAX is expected here, not INTERVAL; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay
-- error: case.sql:2:79: INTERVAL is expected here, not 5; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay
-- error: case.sql:3:75: the longest delay must be positive; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay
-- error: case.sql:4:88: the watermark's delay: '1 MONTH': a month has no fixed length; write days, such as '30 days'
-- error: case.sql:5:95: the clause ends with ADAPTIVE (...), not -; write WATERMARK FOR t AS ADAPTIVE (0.999, MAX INTERVAL 5 MINUTES): the share of the records that shall come in time, and the longest delay

-- case: two watermarks
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t, WATERMARK FOR t AS t)
-- error: case.sql:1:62: there is one WATERMARK; remove this one

-- case: a watermark of another column
CREATE STREAM a (t TIMESTAMP NOT NULL, u INT, WATERMARK FOR t AS u)
-- error: case.sql:1:66: the watermark is of t, not u; write WATERMARK FOR t AS t - INTERVAL 30 SECONDS

-- case: a watermark that adds
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t + INTERVAL 1 SECOND)
-- error: case.sql:1:61: only - INTERVAL is allowed here, not +; write WATERMARK FOR t AS t - INTERVAL 30 SECONDS

-- case: a watermark without INTERVAL
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t - 5)
-- error: case.sql:1:63: INTERVAL is expected here, not 5; write WATERMARK FOR t AS t - INTERVAL 30 SECONDS

-- case: a watermark without AS
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t)
-- error: case.sql:1:54: AS is expected here, but the statement ends; write WATERMARK FOR t AS t - INTERVAL 30 SECONDS

-- case: a delay in months
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t - INTERVAL 1 MONTH)
-- error: case.sql:1:72: the watermark's delay: '1 MONTH': a month has no fixed length; write days, such as '30 days'

-- case: a negative delay
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t - INTERVAL -1 SECOND)
-- error: case.sql:1:72: the watermark's delay: '- 1 SECOND' is negative; write 0 or more

-- case: a delay of an unknown unit
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t - INTERVAL 1 FORTNIGHT)
-- error: case.sql:1:72: the watermark's delay: '1 FORTNIGHT': FORTNIGHT is not a unit; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'

-- case: a delay of nothing at all
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t - INTERVAL)
-- error: case.sql:1:59: the watermark's delay: '' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'

-- case: a delay that is too long
CREATE STREAM a (t TIMESTAMP NOT NULL, WATERMARK FOR t AS t - INTERVAL 999999999 DAYS)
-- error: case.sql:1:72: the watermark's delay: '999999999 DAYS' is too long; at most 36500 days are allowed

-- case: places that are none
CREATE STREAM a (x INT FROM '$', y INT FROM '$.a[*]', z INT FROM '$[0]', u INT FROM key, v INT FROM, w INT FROM '')
-- error: case.sql:1:29: column x: '$' names no part of a record; write a key, or a path such as '$.meta.ts' or '$.items[0].price'
-- error: case.sql:1:45: column y: '$.a[*]' is not a path: unexpected '[*]'; write a key, or a path such as '$.meta.ts' or '$.items[0].price'
-- error: case.sql:1:66: column z: '$[0]' is not a path: a record is an object; begin with a key
-- error: case.sql:1:85: column u: a text follows FROM, not key; write u TYPE FROM 'key', or FROM '$.path.to.it'
-- error: case.sql:1:96: column v: a text follows FROM, but the statement ends; write v TYPE FROM 'key', or FROM '$.path.to.it'
-- error: case.sql:1:113: column w: '' names no part of a record; write a key, or a path such as '$.meta.ts' or '$.items[0].price'

-- case: formats that are none
CREATE STREAM a (x INT FORMAT 'millis', y TIMESTAMP FORMAT 'nanos', z TIMESTAMP FORMAT millis, u TIMESTAMP FORMAT 'dd/MM/yyyy')
-- error: case.sql:1:18: column x: FORMAT says how timestamps are written, and INT has none; remove it, or write x TIMESTAMP FORMAT 'millis'
-- error: case.sql:1:41: column y: FORMAT 'nanos' is not known; write 'iso8601', 'seconds', 'millis' or 'micros' (since 1970). For other texts read a STRING, and compute the time from it: y TIMESTAMP AS to_timestamp(<column>, 'yyyy-MM-dd HH:mm:ss')
-- error: case.sql:1:88: column z: a text follows FORMAT, not millis; write z TIMESTAMP FORMAT 'millis'
-- error: case.sql:1:96: column u: FORMAT 'dd/MM/yyyy' is not known; write 'iso8601', 'seconds', 'millis' or 'micros' (since 1970). For other texts read a STRING, and compute the time from it: u TIMESTAMP AS to_timestamp(<column>, 'yyyy-MM-dd HH:mm:ss')

-- case: clauses that stand twice
CREATE STREAM a (x INT FROM 'a' FROM 'b', y TIMESTAMP FORMAT 'millis' FORMAT 'micros', z INT NOT NULL NOT NULL)
-- error: case.sql:1:33: column x: FROM stands twice; keep one
-- error: case.sql:1:71: column y: FORMAT stands twice; keep one
-- error: case.sql:1:103: column z: NOT NULL stands twice; keep one
