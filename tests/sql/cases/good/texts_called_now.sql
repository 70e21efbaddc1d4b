-- oracle: spark
CREATE MATERIALIZED VIEW texts_called_now AS
SELECT id, 'now' AS label, shop || 'now' AS both, CASE WHEN qty > 1 THEN 'today' ELSE shop END AS bucket,
  coalesce(shop, 'today') AS shop, buyer.name IN ('now', 'today') AS soon, prices['now'] AS price,
  array_contains(tags, 'tomorrow') AS tagged, CAST(day AS STRING) = 'today' AS is_text,
  ts > 'epoch' AS later
FROM orders WHERE shop <> 'now' AND upper(shop) NOT LIKE 'today';
