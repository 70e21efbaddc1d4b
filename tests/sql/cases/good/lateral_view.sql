CREATE MATERIALIZED VIEW lateral_view AS
SELECT tag, count(*) AS n FROM orders LATERAL VIEW explode(tags) t AS tag GROUP BY tag;
