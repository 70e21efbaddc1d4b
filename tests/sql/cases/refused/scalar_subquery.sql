CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE price > (SELECT avg(price) FROM orders)
-- error: 1:68: queries within expressions are not supported; a query may stand in FROM, in parentheses, or as WITH name AS (...)
