CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE id IN (SELECT id FROM clicks)
-- error: 1:66: queries within expressions are not supported; a query may stand in FROM, in parentheses, or as WITH name AS (...)
