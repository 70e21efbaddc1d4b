CREATE MATERIALIZED VIEW explode_outer_in_select AS
SELECT id, explode_outer(tags) AS tag FROM orders WHERE qty > 0;
