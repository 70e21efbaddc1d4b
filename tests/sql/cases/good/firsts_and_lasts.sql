CREATE MATERIALIZED VIEW firsts_and_lasts AS
SELECT window.start AS start, shop, first(qty) AS first, last(id) AS last, first(price) IGNORE
  NULLS AS known, min_by(id, qty) AS least, max_by(id, price) AS most FROM orders GROUP BY
  window(ts, '2 minutes'), shop;
