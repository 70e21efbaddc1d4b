-- The outer expression is not asked where the inner condition is false.
CREATE MATERIALIZED VIEW guarded_by_a_subquery AS
SELECT id, 100 / qty AS share FROM (SELECT id, qty FROM orders WHERE qty <> 0);
