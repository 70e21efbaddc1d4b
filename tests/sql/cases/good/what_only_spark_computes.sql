-- oracle: spark
CREATE MATERIALIZED VIEW what_only_spark_computes AS
SELECT shop, upper(max(body)) AS loud, soundex(min(shop)) AS sounds, count(*) << 2 AS shifted,
  max(shop) RLIKE '^e' AS early, to_json(named_struct('n', count(*))) AS json,
  transform(sort_array(collect_set(qty)), q -> q * 10) AS tens,
  CASE WHEN count(*) > 0 THEN factorial(3) ELSE 0 END AS six, named_struct('n', count(*), 'up', upper(max(shop))) AS pair,
  max(ts) - make_dt_interval(0, 1) AS before, CAST(max(price) AS STRING) || '!' AS shown
FROM orders GROUP BY shop HAVING reverse(max(id)) IS NOT NULL;
