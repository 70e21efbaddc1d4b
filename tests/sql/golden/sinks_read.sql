-- case: a sink of a view
CREATE STREAM s (a INT, t TIMESTAMP NOT NULL, WATERMARK FOR t AS t);
CREATE MATERIALIZED VIEW v WITH (emit = 'final') AS
SELECT window.start AS w, count(*) AS n FROM s GROUP BY window(t, '1 minute');
CREATE SINK spend FROM v WITH (topic = 'spend.rows', mode = 'RETRACT')
-- stream: s (a INT, t TIMESTAMP NOT NULL) from s, time t - 0 us, key None, timestamps None
-- view: v, 0 us, emit final
-- from: s
-- window: 60000000 us
-- call: call_0 = count()
-- output: w = _window_start
-- output: n = call_0
-- sink: spend of v to spend.rows, retract

-- case: a topic and a mode that were left out
CREATE STREAM s (a INT);
CREATE MATERIALIZED VIEW v WITH (emit = 'every 10 seconds') AS SELECT a FROM s;
CREATE SINK out FROM v
-- stream: s (a INT) from s, key None, timestamps None
-- view: v, 0 us, emit every 10000000
-- from: s
-- output: a = a
-- sink: out of v to out, upsert

-- case: a view in another case
CREATE STREAM s (a INT);
CREATE MATERIALIZED VIEW Totals AS SELECT a FROM s;
CREATE SINK out FROM totals
-- stream: s (a INT) from s, key None, timestamps None
-- view: Totals, 0 us
-- from: s
-- output: a = a
-- sink: out of Totals to out, upsert
