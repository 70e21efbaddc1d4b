CREATE MATERIALIZED VIEW v WITH (time_zone = 'Europe/Vienn') AS SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(ts, '1 day')
-- error: 1:46: time_zone 'Europe/Vienn' is not known (did you mean Europe/Vienna?); write a name such as 'Europe/Berlin'
