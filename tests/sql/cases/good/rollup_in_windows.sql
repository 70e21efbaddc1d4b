CREATE MATERIALIZED VIEW rollup_in_windows AS
SELECT window.start AS start, shop, count(*) AS n FROM orders GROUP BY window(ts, '1 minute'),
  ROLLUP (shop);
