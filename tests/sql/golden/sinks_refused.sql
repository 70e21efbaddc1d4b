-- case: sinks that say too little or too much
CREATE SINK;
CREATE SINK a;
CREATE SINK a FROM;
CREATE SINK a FROM (SELECT 1);
CREATE SINK a FROM v AS SELECT 1;
CREATE SINK a FROM v WITH (topc = 'x')
-- error: case.sql:1:8: the name of the sink is expected here, but the statement ends
-- error: case.sql:2:13: FROM is expected here, but the statement ends; write CREATE SINK a FROM view WITH (topic = '...')
-- error: case.sql:3:15: the name of the view is expected here, but the statement ends
-- error: case.sql:4:20: a sink takes a view by its name; write the query as CREATE MATERIALIZED VIEW, and the sink FROM that
-- error: case.sql:5:22: the statement should end here, not AS; write ; between statements
-- error: case.sql:6:1: sink a is fed by v, which is not a view
-- error: case.sql:6:28: CREATE SINK has no option topc (did you mean topic?); its options are topic, mode, key

-- case: a view that is not there
CREATE STREAM s (a INT);
CREATE MATERIALIZED VIEW spent AS SELECT a FROM s;
CREATE SINK out FROM spend
-- error: case.sql:3:1: sink out is fed by spend, which is not a view (did you mean spent?)

-- case: a stream is not a view
CREATE STREAM s (a INT);
CREATE SINK out FROM s
-- error: case.sql:2:1: sink out is fed by s, which is not a view

-- case: modes and topics that do not exist
CREATE STREAM s (a INT);
CREATE MATERIALIZED VIEW v AS SELECT a FROM s;
CREATE SINK a FROM v WITH (mode = 'upsrt');
CREATE SINK b FROM v WITH (topic = 'no topic');
CREATE SINK c FROM v WITH (topic = 'headrace.time');
CREATE SINK d FROM v WITH (topic = 'v.dead')
-- error: case.sql:3:35: mode 'upsrt' is not known (did you mean upsert?); write 'upsert' (the newest row of a key, and a tombstone for one that is gone), 'retract' (what no longer holds is sent too) or 'debezium' (before, after and op)
-- error: case.sql:4:36: topic 'no topic': a topic has 1 to 249 letters, digits, dots, underscores and dashes
-- error: case.sql:5:36: topic headrace.time: topics that start with headrace. are reserved for the engine; choose another
-- error: case.sql:6:1: sink d writes to v.dead, a side topic of this project; choose another topic

-- case: two sinks of one name, or into one topic
CREATE STREAM s (a INT);
CREATE MATERIALIZED VIEW v AS SELECT a FROM s;
CREATE SINK a FROM v WITH (topic = 'x');
CREATE SINK A FROM v WITH (topic = 'y');
CREATE SINK b FROM v WITH (topic = 'x');
CREATE SINK v FROM v WITH (topic = 'z')
-- error: case.sql:4:1: A is defined at case.sql:3:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one
-- error: case.sql:5:1: sink b writes to x, as a at case.sql:3:1 does; their rows could not be told apart, so give each its own topic
-- error: case.sql:6:1: v is defined at case.sql:2:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one

-- case: rows that would come back
CREATE STREAM s (a INT) WITH (topic = 'one');
CREATE STREAM r (a INT) WITH (topic = 'two');
CREATE MATERIALIZED VIEW v AS SELECT a FROM s;
CREATE MATERIALIZED VIEW u AS SELECT a FROM r;
CREATE SINK a FROM v WITH (topic = 'two');
CREATE SINK b FROM u WITH (topic = 'one')
-- error: case.sql:5:1: sink a writes to two, which feeds the view that it comes from: its rows would come back endlessly; choose another topic
-- error: case.sql:6:1: sink b writes to one, which feeds the view that it comes from: its rows would come back endlessly; choose another topic

-- case: keys with two parts of one name
CREATE STREAM s (a INT, b INT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts);
CREATE MATERIALIZED VIEW v AS SELECT b AS k0, count(*) AS n FROM s GROUP BY a, b;
CREATE MATERIALIZED VIEW w AS SELECT a AS window_start FROM s GROUP BY cumulate(ts, '1 minute', '1 hour'), a;
CREATE MATERIALIZED VIEW u AS SELECT b AS k1, a FROM s GROUP BY a, b;
CREATE SINK a FROM v;
CREATE SINK b FROM w;
CREATE SINK c FROM u
-- error: case.sql:5:1: sink a: the key of its records would have two parts called k0, an output of v and its grouping a, which is not selected; select it too, or rename the output
-- error: case.sql:6:1: sink b: the key of its records would have two parts called window_start, an output of w and its window's start, which is not selected; select it too, or rename the output

-- case: emissions that mean nothing
CREATE STREAM s (a INT, t TIMESTAMP NOT NULL, WATERMARK FOR t AS t);
CREATE MATERIALIZED VIEW a WITH (emit = 'sometimes') AS SELECT a FROM s;
CREATE MATERIALIZED VIEW b WITH (emit = 'every') AS SELECT a FROM s;
CREATE MATERIALIZED VIEW c WITH (emit = 'every 0 seconds') AS SELECT a FROM s;
CREATE MATERIALIZED VIEW d WITH (emit = 'every -1 second') AS SELECT a FROM s;
CREATE MATERIALIZED VIEW e WITH (emit = 'final') AS SELECT a, count(*) AS n FROM s GROUP BY a
-- error: case.sql:2:41: emit 'sometimes' is not known; write 'changes', 'every 10 seconds' or 'final'
-- error: case.sql:3:41: emit: '' is not a duration; write a whole number and a unit, such as '30 seconds', '10 minutes', '1 hour' or '7 days'
-- error: case.sql:4:41: `emit = 'every 0 seconds'` is not allowed; use `emit = 'changes'`
-- error: case.sql:5:41: emit: '-1 second' is negative; write 0 or more
-- error: case.sql:6:41: emit of e: without a window no row is ever final; write 'changes', or group by window(...)

-- case: keys that a sink may not have
CREATE STREAM s (a INT, b INT, c INT);
CREATE MATERIALIZED VIEW v AS SELECT a, b, count(*) AS n FROM s GROUP BY a, b;
CREATE MATERIALIZED VIEW rows AS SELECT a, b FROM s;
CREATE SINK one FROM v WITH (key = 'A');
CREATE SINK two FROM v WITH (key = 'a, ');
CREATE SINK three FROM v WITH (key = 'a');
CREATE SINK four FROM rows WITH (key = 'a', mode = 'upsert');
CREATE SINK five FROM rows WITH (key = 'a', mode = 'retract');
CREATE SINK six FROM v WITH (key = 'b, a, n')
-- error: case.sql:4:1: sink one: its key 'A' is not a column of v (did you mean a?)
-- error: case.sql:5:1: sink two: its key '' is not a column of v; it has a, b, n
-- error: case.sql:6:1: sink three: in mode 'upsert' rows with the same key replace each other, and the key a lacks b, by which v groups; add it, or write mode = 'retract' or 'debezium', where keys need not be unique
-- error: case.sql:7:1: sink four: the rows of rows are records, which only their place in the log tells apart, so in mode 'upsert' rows with the same a would replace each other; leave the key out, or write mode = 'retract' or 'debezium'

-- case: changes that are kept when
CREATE STREAM s (a INT);
CREATE MATERIALIZED VIEW v WITH (changes = 'alway') AS SELECT a FROM s
-- error: case.sql:2:44: changes 'alway' is not known (did you mean always?); write 'followed' (kept while somebody reads them) or 'always'
