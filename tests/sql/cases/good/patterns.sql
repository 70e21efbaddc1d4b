CREATE MATERIALIZED VIEW patterns AS
SELECT id FROM orders WHERE shop LIKE 'e%' OR shop LIKE '_est' OR shop RLIKE '^E.*t$';
