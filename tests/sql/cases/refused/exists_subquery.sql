CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM clicks)
-- error: 1:67: queries within expressions are not supported; a query may stand in FROM, in parentheses, or as WITH name AS (...)
