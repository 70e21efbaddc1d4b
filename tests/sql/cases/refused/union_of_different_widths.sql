CREATE MATERIALIZED VIEW v AS SELECT id, shop FROM orders UNION ALL SELECT id FROM clicks
-- error: 1:69: this query of UNION ALL has 1 column, and the first has 2; select as many in each
