CREATE MATERIALIZED VIEW null_functions AS
SELECT id, coalesce(shop, 'none') AS shop, nullif(qty, 0) AS qty, ifnull(units, 0) AS units, shop
  IS NULL AS missing, shop IS NOT DISTINCT FROM NULL AS same FROM orders;
