CREATE MATERIALIZED VIEW v AS SELECT explode(tags) AS tag, count(*) AS n FROM orders GROUP BY tag
-- error: 1:38: explode() cannot stand in a grouped SELECT; write FROM ... LATERAL VIEW explode(tags) t AS c, and use c
