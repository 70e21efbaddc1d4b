CREATE MATERIALIZED VIEW v AS SELECT explode(tags) AS a, explode(lines) AS b FROM orders
-- error: 1:58: a SELECT has one generator; write this one as FROM ... LATERAL VIEW explode(lines) t AS c, and select c
