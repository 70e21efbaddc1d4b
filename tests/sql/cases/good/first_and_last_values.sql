CREATE MATERIALIZED VIEW first_and_last_values AS
SELECT window.start AS start, shop, first_n(qty, 2) AS two, last_n(id, 3) AS three, last_n(price,
  2) IGNORE NULLS AS prices FROM orders GROUP BY window(ts, '2 minutes'), shop;
