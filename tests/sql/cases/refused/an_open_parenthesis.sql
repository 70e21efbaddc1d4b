CREATE MATERIALIZED VIEW v AS SELECT (id FROM orders
-- error: 1:42: this expression cannot be read near FROM; check its syntax
