CREATE MATERIALIZED VIEW explode_in_a_union AS
SELECT tag FROM (SELECT explode(tags) AS tag FROM orders UNION ALL SELECT page FROM clicks);
