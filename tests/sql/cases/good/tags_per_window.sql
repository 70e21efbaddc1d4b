CREATE MATERIALIZED VIEW tags_per_window AS
SELECT window.start AS start, tag, count(*) AS n FROM orders LATERAL VIEW explode(tags) t AS tag
  GROUP BY window(ts, '2 minutes'), tag;
