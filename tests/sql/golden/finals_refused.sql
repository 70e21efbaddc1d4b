-- case: functions that are not proven over aggregates of windows that overlap
CREATE MATERIALIZED VIEW v AS
SELECT upper(max(id)) AS a, exp(sum(price)) AS b, to_json(max(address)) AS c, reverse(max(id)) AS d,
  format_number(sum(price), 2) AS e, bround(sum(price), 2) AS f, date_format(upper(max(id)), 'HH') AS g FROM payments GROUP BY window(ts, '2 minutes', '1 minute')
-- error: case.sql:2:8: upper() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT upper(...) FROM view, or apply it to the argument
-- error: case.sql:2:29: exp() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT exp(...) FROM view, or apply it to the argument
-- error: case.sql:2:51: to_json() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT to_json(...) FROM view, or apply it to the argument
-- error: case.sql:2:79: reverse() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT reverse(...) FROM view, or apply it to the argument
-- error: case.sql:3:3: format_number() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT format_number(...) FROM view, or apply it to the argument
-- error: case.sql:3:38: bround() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT bround(...) FROM view, or apply it to the argument
-- error: case.sql:3:78: upper() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT upper(...) FROM view, or apply it to the argument

-- case: operators that are not proven over aggregates of windows that overlap
CREATE MATERIALIZED VIEW v AS
SELECT max(id) RLIKE 'x' AS a, max(id) ILIKE 'x' AS b, count(*) << 2 AS c, max(id) LIKE 'x/%' ESCAPE '/' AS d,
  max(id) IS DISTINCT FROM min(id) AS e, max(ts) - INTERVAL '1:30' MINUTE TO SECOND AS f FROM payments GROUP BY window(ts, '2 minutes', '1 minute')
-- error: case.sql:2:8: RLIKE cannot be computed beside an aggregate of windows that overlap; compute it when you read the view
-- error: case.sql:2:32: ILIKE cannot be computed beside an aggregate of windows that overlap; compute it when you read the view
-- error: case.sql:2:56: << cannot be computed beside an aggregate of windows that overlap; compute it when you read the view
-- error: case.sql:2:76: ESCAPE cannot be computed beside an aggregate of windows that overlap; compute it when you read the view
-- error: case.sql:3:3: IS DISTINCT FROM cannot be computed beside an aggregate of windows that overlap; compute it when you read the view
-- error: case.sql:3:52: an interval of two units cannot stand beside an aggregate of windows that overlap; write one unit, such as INTERVAL 90 SECONDS

-- case: a number of arguments that a function does not take over aggregates
CREATE MATERIALIZED VIEW v AS
SELECT round(sum(price), 2, 1) AS a, date_add(DAY, 1, max(ts)) AS b, concat() || max(id) AS c, floor(sum(price), 2) AS d,
  coalesce() + count(*) AS e, to_date(max(id), 'yyyy') AS f FROM payments GROUP BY window(ts, '2 minutes', '1 minute')
-- error: case.sql:2:8: round() takes 1 to 2 arguments over aggregates of windows that overlap, not 3; compute it when you read the view
-- error: case.sql:2:38: date_add() takes 2 arguments over aggregates of windows that overlap, not 3; compute it when you read the view
-- error: case.sql:2:96: floor() takes 1 argument over aggregates of windows that overlap, not 2; compute it when you read the view
-- error: case.sql:3:31: to_date() takes 1 argument over aggregates of windows that overlap, not 2; compute it when you read the view

-- case: functions of an output by its name
CREATE MATERIALIZED VIEW v AS
SELECT card, count(*) AS n FROM payments GROUP BY card, window(ts, '2 minutes', '1 minute') HAVING exp(n) > 3
-- error: case.sql:2:100: exp() cannot be applied to an aggregate of windows that overlap; compute it when you read: SELECT exp(...) FROM view, or apply it to the argument

-- case: functions over the edges of windows that overlap
CREATE MATERIALIZED VIEW v AS
SELECT date_part('hour', window.start) AS a, to_json(named_struct('a', window.start)) AS b, count(*) AS n
FROM payments GROUP BY window(ts, '2 minutes', '1 minute');
CREATE MATERIALIZED VIEW w AS
SELECT from_utc_timestamp(window.end, 'Europe/Berlin') AS a, count(*) AS n FROM payments GROUP BY cumulate(ts, '5 minutes', '1 hour')
-- error: case.sql:2:8: date_part() cannot be applied to an edge of windows that overlap; compute it when you read: SELECT date_part(...) FROM view
-- error: case.sql:2:46: to_json() cannot be applied to an edge of windows that overlap; compute it when you read: SELECT to_json(...) FROM view
-- error: case.sql:5:8: from_utc_timestamp() cannot be applied to an edge of windows that overlap; compute it when you read: SELECT from_utc_timestamp(...) FROM view
