CREATE MATERIALIZED VIEW histograms AS
SELECT window.start AS start, histogram(shop) AS shops, mode(qty) AS usual FROM orders GROUP BY
  window(ts, '2 minutes');
