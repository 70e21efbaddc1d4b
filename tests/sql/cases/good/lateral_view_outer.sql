CREATE MATERIALIZED VIEW lateral_view_outer AS
SELECT id, tag FROM orders LATERAL VIEW OUTER explode(tags) t AS tag;
