-- case: unknown columns, and columns that stand behind
CREATE STREAM a (x INT, y AS z + 1, z AS x + 1, u AS u + 1, v AS xx + 1)
-- error: case.sql:1:30: column y: z is computed too, and does not stand before it; computed columns use declared ones, and computed ones that stand before them
-- error: case.sql:1:54: column u: u is computed too, and does not stand before it; computed columns use declared ones, and computed ones that stand before them
-- error: case.sql:1:66: a has no column xx (did you mean x?); its columns are x, y, z, u

-- case: what is no expression
CREATE STREAM a (x INT, y AS, z INT AS x FROM b, u AS x y, v AS SELECT x, w AS (x +), q AS *, r AS NULL)
-- error: case.sql:1:27: column y: an expression follows AS; write y TYPE AS <an expression over the other columns>
-- error: case.sql:1:40: column z: one expression is expected here, and no query; write z TYPE AS <an expression over the other columns>
-- error: case.sql:1:55: one expression without a name is expected here; check its syntax
-- error: case.sql:1:65: this expression cannot be read near SELECT; check its syntax
-- error: case.sql:1:84: this expression cannot be read near ); check its syntax
-- error: case.sql:1:92: one expression without a name is expected here; check its syntax
-- error: case.sql:1:100: NULL alone has no type; write CAST(NULL AS STRING)

-- case: what is not of one record
CREATE STREAM a (x INT, y AS sum(x), z AS row_number() OVER (ORDER BY x), u AS now(), v AS rand(), w AS explode(array(x)), q AS watermark())
-- error: case.sql:1:30: column y: an aggregate is over many records, and a column is of one; write the aggregate in a view
-- error: case.sql:1:43: row_number() ranks rows, which is not built yet; rank them when you read the view
-- error: case.sql:1:80: now depends on when it is asked, not on the log, so a replay would differ; use the record's own time, or watermark()
-- error: case.sql:1:92: rand gives another answer every time, so a replay would differ; let the producer put the value into the record
-- error: case.sql:1:105: explode() makes several rows of one, and cannot stand within an expression; write FROM ... LATERAL VIEW explode(x) t AS c, and use c here
-- error: case.sql:1:129: column q: watermark() is known after the columns are; use it in a view

-- case: clauses of declared columns
CREATE STREAM a (x INT, y INT NOT NULL AS x, z INT FROM 'z' AS x, u TIMESTAMP FORMAT 'millis' AS x, v ARRAY<INT NOT NULL> AS array(x))
-- error: case.sql:1:40: column y: what is computed has neither FROM, FORMAT nor NOT NULL; write y TYPE AS <expression>. (The event time and the unique id are never null: a record without one is dead.)
-- error: case.sql:1:61: column z: what is computed has neither FROM, FORMAT nor NOT NULL; write z TYPE AS <expression>. (The event time and the unique id are never null: a record without one is dead.)
-- error: case.sql:1:95: column u: what is computed has neither FROM, FORMAT nor NOT NULL; write u TYPE AS <expression>. (The event time and the unique id are never null: a record without one is dead.)
-- error: case.sql:1:103: column v: what is computed has neither FROM, FORMAT nor NOT NULL; write v TYPE AS <expression>. (The event time and the unique id are never null: a record without one is dead.)

-- case: names that are taken
CREATE STREAM a (x INT, X AS 1, y AS 2, y AS 3, _z AS 4)
-- error: case.sql:1:25: column X occurs twice (names are not case-sensitive); rename one
-- error: case.sql:1:41: column y occurs twice (names are not case-sensitive); rename one
-- error: case.sql:1:49: column name _z: names that start with _ are reserved; drop the underscore

-- case: an event time without a type, of another type, and from a map
CREATE STREAM a (x STRING, t AS to_timestamp(x), WATERMARK FOR t AS t);
CREATE STREAM b (x STRING, t STRING AS x, WATERMARK FOR t AS t);
CREATE STREAM c (x STRING, t TIMESTAMP AS CAST(str_to_map(x)['t'] AS TIMESTAMP), WATERMARK FOR t AS t);
CREATE STREAM d (x STRING, i AS x, t TIMESTAMP NOT NULL, WATERMARK FOR t AS t) WITH (unique = 'i', unique_within = '1 hour')
-- error: case.sql:1:28: column t: the event time has a type; write t TIMESTAMP AS ...
-- error: case.sql:2:57: WATERMARK FOR t: the event time must be a TIMESTAMP, not STRING; write t TIMESTAMP AS ...
-- error: case.sql:3:28: column t: str_to_map() makes a map, which the event time cannot be computed from: Spark takes keys of a record that fails for those of the next. Read the value with t TIMESTAMP FROM '$.path.to.it', or compute it with get_json_object
-- error: case.sql:4:28: column i: the unique id has a type; write i STRING AS ...

-- case: no column is declared
CREATE STREAM a (x AS 1)
-- error: case.sql:1:15: stream a has no columns; write at least one

-- case: the record's own columns are not there when it is read
CREATE STREAM a (x INT, t TIMESTAMP AS coalesce(_arrival, TIMESTAMP '2026-01-01 00:00:00'), WATERMARK FOR t AS t)
-- error: case.sql:1:25: column t: the event time is computed from the columns of the record's value, and _arrival is none of them
