CREATE MATERIALIZED VIEW tumbling_windows AS
SELECT window.start AS start, window.end AS end, shop, count(*) AS n, sum(price) AS total,
  avg(price) AS mean FROM orders GROUP BY window(ts, '1 minute'), shop;
