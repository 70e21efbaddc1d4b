-- case: functions that do not exist
CREATE MATERIALIZED VIEW v AS
SELECT uppper(id) AS a, foo_bar_baz(1) AS b FROM orders
-- error: case.sql:2:8: there is no function uppper() (did you mean upper?); all of Spark's own can be called
-- error: case.sql:2:25: there is no function foo_bar_baz(); all of Spark's own can be called

-- case: functions that do not exist, in groups and conditions
CREATE MATERIALIZED VIEW v AS
SELECT shop, count(*) AS n FROM orders WHERE lenght(id) > 1 GROUP BY shop HAVING summ(size(tags)) > 1
-- error: case.sql:2:46: there is no function lenght() (did you mean length?); all of Spark's own can be called
-- error: case.sql:2:82: there is no function summ() (did you mean sum?); all of Spark's own can be called

-- case: functions of ksqlDB
CREATE MATERIALIZED VIEW v AS
SELECT latest_by_offset(id) AS a, earliest_by_offset(id) AS b, extractjsonfield(body, '$.a') AS c, stringtotimestamp(id, 'yyyy') AS d FROM orders
-- error: case.sql:2:8: latest_by_offset() is not known here; write last(x), and last(x) IGNORE NULLS where nulls do not count
-- error: case.sql:2:35: earliest_by_offset() is not known here; write first(x), and first(x) IGNORE NULLS where nulls do not count
-- error: case.sql:2:64: extractjsonfield() is not known here; write get_json_object with a path, such as '$.name'
-- error: case.sql:2:100: stringtotimestamp() is not known here; write to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')

-- case: functions of Flink
CREATE MATERIALIZED VIEW v AS
SELECT json_value(body, '$.a') AS a, proctime() AS b, split_index(id, ',', 1) AS c FROM orders
-- error: case.sql:2:8: json_value() is not known here; write get_json_object with a path, such as '$.name'
-- error: case.sql:2:38: proctime depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:2:55: split_index() is not known here; write split(x, ',')[0]

-- case: functions of Arroyo
CREATE MATERIALIZED VIEW v AS
SELECT extract_json_string(body, '$.a') AS a, array_length(tags) AS b, date_bin(INTERVAL '1' MINUTE, ts) AS c FROM orders
-- error: case.sql:2:8: extract_json_string() is not known here; write get_json_object with a path, such as '$.name'
-- error: case.sql:2:47: array_length() is not known here; write size(x)
-- error: case.sql:2:72: date_bin() is not known here; write GROUP BY window(<event time>, '1 minute')

-- case: pseudo columns of ksqlDB
CREATE MATERIALIZED VIEW v AS
SELECT WINDOWSTART AS a, WINDOWEND AS b, count(*) AS n FROM orders GROUP BY window(ts, '1 minute')
-- error: case.sql:2:8: WINDOWSTART is written window.start here
-- error: case.sql:2:26: WINDOWEND is written window.end here

-- case: the time of a record as ksqlDB and Flink call it
CREATE MATERIALIZED VIEW v AS
SELECT rowtime AS a FROM orders
-- error: case.sql:2:8: rowtime is written ts here

-- case: fields with an arrow
CREATE MATERIALIZED VIEW v AS
SELECT buyer->name AS a, upper(buyer->name) AS b, body->>'a' AS c FROM orders
-- error: case.sql:2:13: a field of a STRUCT is written with a dot: s.field; for one of a JSON text write get_json_object with its path, such as '$.field'
-- error: case.sql:2:37: -> makes a lambda, which is not allowed here; a field is written with a dot: s.field
-- error: case.sql:2:55: a field of a STRUCT is written with a dot: s.field; for one of a JSON text write get_json_object with its path, such as '$.field'
