-- oracle: spark
CREATE MATERIALIZED VIEW higher_order_functions AS
SELECT id, transform(tags, t -> upper(t)) AS loud, filter(tags, t -> t <> shop) AS others,
  aggregate(lines, 0, (acc, l) -> acc + coalesce(l.qty, 0)) AS units, exists(tags, t -> t =
  'sale') AS sale, forall(tags, t -> t IS NOT NULL) AS whole, zip_with(tags, tags, (a, b) ->
  concat(a, b)) AS pairs, transform(tags, (t, i) -> concat(t, i)) AS numbered FROM orders;
