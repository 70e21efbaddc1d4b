CREATE MATERIALIZED VIEW v AS SELECT {'a': qty} AS x FROM orders
-- error: 1:38: { has no meaning here; write named_struct('a', x) or map('a', x)
