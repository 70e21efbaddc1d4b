CREATE MATERIALIZED VIEW v AS SELECT AS STRUCT shop, qty FROM orders
-- error: 1:38: SELECT AS STRUCT is not supported; write SELECT named_struct('a', a, 'b', b) AS name
