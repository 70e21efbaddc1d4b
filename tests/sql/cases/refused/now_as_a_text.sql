CREATE STREAM s (id STRING, soon TIMESTAMP AS 'tomorrow', label AS 'today');
CREATE MATERIALIZED VIEW v AS
SELECT id, CAST('now' AS TIMESTAMP) AS a, to_date('today') AS b, 'tomorrow'::date AS c,
  date_add('today', 1) AS d, coalesce(shipped, ' NOW+01:00') AS e, if(paid, 'now', ts) AS f,
  CASE day WHEN 'yesterday' THEN 1 END AS g, map('a', ts, 'b', 'now') AS h,
  filter(array(day), d -> d = 'today') AS i, day IN ('2026-03-01', 'to' 'day') AS j,
  map('now', ts, 'now', 'now') AS k, CASE WHEN 'yesterday' THEN 1 END AS l
FROM orders WHERE ts > 'now';
CREATE MATERIALIZED VIEW w AS SELECT id FROM (SELECT id, ts, 'now' AS t FROM orders) WHERE ts > t;
CREATE VIEW below AS SELECT id, ts, ('today') AS t FROM orders;
CREATE MATERIALIZED VIEW y AS SELECT ts AS t FROM orders UNION ALL SELECT 'now' FROM orders;
CREATE MATERIALIZED VIEW z AS SELECT 'now' AS t FROM orders UNION ALL SELECT ts FROM orders;
CREATE MATERIALIZED VIEW x AS SELECT max(ts) AS last FROM orders HAVING max(ts) > 'now';
-- error: 1:47: 'tomorrow' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time or another text
-- error: 1:68: 'today' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time or another text
-- error: 3:17: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'now')
-- error: 3:51: 'today' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'today')
-- error: 3:66: 'tomorrow' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'tomorrow')
-- error: 4:12: 'today' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'today')
-- error: 4:48: ' NOW+01:00' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = ' NOW+01:00')
-- error: 4:77: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'now')
-- error: 5:17: 'yesterday' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'yesterday')
-- error: 5:64: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'now')
-- error: 6:31: 'today' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'today')
-- error: 6:68: 'today' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'today')
-- error: 7:25: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'now')
-- error: 8:24: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'now')
-- error: 9:62: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time or another text
-- error: 10:38: 'today' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time or another text
-- error: 11:75: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time or another text
-- error: 12:38: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time or another text
-- error: 13:83: 'now' means the current time where a TIMESTAMP or DATE is expected, so a replay would differ; write a fixed time, or use the record's own time (to compare texts, write CAST(x AS STRING) = 'now')
