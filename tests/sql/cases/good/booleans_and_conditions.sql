CREATE MATERIALIZED VIEW booleans_and_conditions AS
SELECT shop, bool_and(paid) AS all_paid, bool_or(paid) AS some_paid, count_if(qty > 1) AS many,
  sum(qty) FILTER (WHERE paid) AS paid_qty, count(CASE WHEN paid THEN 1 END) AS paid FROM orders
  GROUP BY shop;
