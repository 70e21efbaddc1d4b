CREATE MATERIALIZED VIEW v AS SELECT CASE WHEN qty > 1 THEN 1 AS x FROM orders
-- error: 1:61: this expression cannot be read near 1; check its syntax
