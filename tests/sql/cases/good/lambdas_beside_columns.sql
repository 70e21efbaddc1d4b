-- oracle: spark
-- A lambda's variable hides the column of its name; the stream's name reaches the column.
CREATE MATERIALIZED VIEW lambdas_beside_columns AS
SELECT id, transform(tags, id -> concat(id, orders.id)) AS a, array_sort(tags, (l, r) -> CASE WHEN
  l < r THEN 1 WHEN l > r THEN -1 ELSE 0 END) AS b, reduce(tags, '', (a, x) -> concat(a,
  coalesce(x, '-')), a -> upper(a)) AS c FROM orders;
