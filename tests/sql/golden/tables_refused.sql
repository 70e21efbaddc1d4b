-- case: no primary key
CREATE TABLE t (id INT, name STRING);
-- error: case.sql:1:14: table t has no primary key, so no change could be told from a new row; write id TYPE PRIMARY KEY, or PRIMARY KEY (a, b) behind the columns. For records that are never changed write CREATE STREAM

-- case: a key that is not declared, and one that stands twice
CREATE TABLE t (id INT, name STRING, PRIMARY KEY (ident));
CREATE TABLE u (id INT, name STRING, PRIMARY KEY (id, ID));
-- error: case.sql:1:14: PRIMARY KEY: t has no column ident
-- error: case.sql:2:17: PRIMARY KEY: id stands twice; remove one

-- case: two keys
CREATE TABLE t (id INT PRIMARY KEY, name STRING PRIMARY KEY);
CREATE TABLE u (id INT PRIMARY KEY, name STRING, PRIMARY KEY (name));
-- error: case.sql:1:37: a table has one PRIMARY KEY; of several columns write PRIMARY KEY (a, b) behind all columns
-- error: case.sql:2:63: a table has one PRIMARY KEY; of several columns write PRIMARY KEY (a, b) behind all columns

-- case: a key that may be null
CREATE TABLE t (id INT NULL PRIMARY KEY);
CREATE TABLE u (id INT NULL, PRIMARY KEY (id));
-- error: case.sql:1:24: PRIMARY KEY id: a key is never null; remove NULL
-- error: case.sql:2:24: PRIMARY KEY id: a key is never null; remove NULL

-- case: keys whose values cannot be compared exactly
CREATE TABLE t (id DOUBLE PRIMARY KEY);
CREATE TABLE u (id ARRAY<INT>, x FLOAT, PRIMARY KEY (id, x));
-- error: case.sql:1:17: PRIMARY KEY 'id': values of DOUBLE cannot be compared exactly; write id STRING or id DECIMAL(18,2)
-- error: case.sql:2:17: PRIMARY KEY 'id': values of ARRAY<INT> cannot be compared exactly; write id STRING or id DECIMAL(18,2)
-- error: case.sql:2:32: PRIMARY KEY 'x': values of FLOAT cannot be compared exactly; write x STRING or x DECIMAL(18,2)

-- case: a key within the record's key has no place
CREATE TABLE t (id INT FROM '$.a.id' PRIMARY KEY);
-- error: case.sql:1:17: PRIMARY KEY 'id': it is read from the record's key, so FROM has no meaning here; remove it, or write key_from = 'value'

-- case: formats of streams, and others
CREATE TABLE t (id INT PRIMARY KEY) WITH (format = 'json');
CREATE TABLE u (id INT PRIMARY KEY) WITH (format = 'avro');
CREATE STREAM s (id INT) WITH (format = 'upsert');
-- error: case.sql:1:52: format 'json' is that of a stream; the records of a table are changes: write format = 'upsert', where the record's key has the primary key
-- error: case.sql:2:52: format 'avro' is not built yet; write format = 'upsert' or 'debezium'
-- error: case.sql:3:41: format 'upsert' is that of a table; write CREATE TABLE, with a PRIMARY KEY, or format = 'json' for records that are never changed

-- case: options that are those of streams, or not known
CREATE TABLE t (id INT PRIMARY KEY) WITH (unique = 'id', key_from = 'header', key = 'id');
-- error: case.sql:1:43: CREATE TABLE has no option unique; its options are topic, format, key_from, timestamp_format, decimal_format, source_table, idle_timeout, removed_records
-- error: case.sql:1:69: key_from 'header' is not known; write 'key', which reads the primary key from the record's key, or 'value'
-- error: case.sql:1:79: CREATE TABLE has no option key (did you mean key_from?); its options are topic, format, key_from, timestamp_format, decimal_format, source_table, idle_timeout, removed_records

-- case: computed columns, and a key that ends in another way
CREATE TABLE t (id INT PRIMARY KEY, double AS id * 2);
CREATE TABLE u (id INT, PRIMARY KEY id);
CREATE TABLE v (id INT, PRIMARY KEY ());
CREATE TABLE w (id INT, PRIMARY KEY (id) DEFERRABLE);
-- error: case.sql:1:37: column double: the columns of a table are read, not computed; compute it in a view over the table
-- error: case.sql:2:37: ( is expected behind PRIMARY KEY, not id; write PRIMARY KEY (column, ...)
-- error: case.sql:3:25: write PRIMARY KEY (column, ...)
-- error: case.sql:4:42: the primary key ends with ), not DEFERRABLE; write PRIMARY KEY (column, ...)

-- case: no columns
CREATE TABLE t WITH (topic = 't');
CREATE TABLE u ();
-- error: case.sql:1:16: table t has no columns; write CREATE TABLE t (column TYPE, ...) WITH (...)
-- error: case.sql:2:14: table u has no columns; write (column TYPE, ...)

-- case: a table is no stream yet for others
CREATE TABLE t (id INT PRIMARY KEY);
CREATE MATERIALIZED VIEW v AS SELECT id FROM t;
-- error: case.sql:2:46: t is a table, and views over tables are not built yet; read its rows with `headrace sql`, by HTTP or with a sink

-- case: a name that is taken
CREATE TABLE payments (id INT PRIMARY KEY);
-- error: case.sql:1:1: payments is defined at streams.sql:1:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one

-- case: the topic of a stream that the project writes, and a side topic
CREATE STREAM big WITH (topic = 'bigs') AS SELECT * FROM payments;
CREATE TABLE t (id INT PRIMARY KEY) WITH (topic = 'bigs');
CREATE TABLE u (id INT PRIMARY KEY) WITH (topic = 'payments.dead');
-- error: case.sql:2:1: table t reads bigs, which big at case.sql:1:1 is written to: it would see the records later and with other watermarks; read FROM big, which has the same rows, or read the topic from another project
-- error: case.sql:3:1: table u reads payments.dead, a side topic of this project: the records that are put aside there would come back; read it from another project

-- case: options of change events, and of others
CREATE TABLE t (id INT PRIMARY KEY) WITH (decimal_format = 'text', source_table = 'x');
CREATE TABLE u (id INT PRIMARY KEY) WITH (format = 'debezium', decimal_format = 'hex', key_from = 'value');
-- error: case.sql:1:60: decimal_format is of format = 'debezium'; remove it, or write that format
-- error: case.sql:1:83: source_table is of format = 'debezium'; remove it, or write that format
-- error: case.sql:2:81: decimal_format 'hex' is not known; write 'text', or 'base64' for decimal.handling.mode = precise
-- error: case.sql:2:99: the key of a change event is read from the event itself; remove key_from
