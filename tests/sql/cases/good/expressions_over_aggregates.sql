CREATE MATERIALIZED VIEW expressions_over_aggregates AS
SELECT window.start AS start, CASE WHEN count(*) > 3 THEN 'busy' ELSE 'quiet' END AS load,
  coalesce(sum(qty), 0) + 1 AS qty, CAST(avg(price) AS DECIMAL(10,2)) AS mean, named_struct('n',
  count(*), 'most', max(qty)) AS pair FROM orders GROUP BY window(ts, '1 minute');
