CREATE MATERIALIZED VIEW union_of_shops AS
SELECT order_id AS id, amount, items, at FROM north UNION ALL SELECT CAST(nr AS STRING) AS id,
  CAST(total AS DECIMAL(8,2)) AS amount, items, sold_at FROM south;
