CREATE MATERIALIZED VIEW hopping_windows AS
SELECT window.start AS start, shop, count(*) AS n, max(units) AS most FROM orders GROUP BY
  window(ts, '1 minute', '20 seconds'), shop;
