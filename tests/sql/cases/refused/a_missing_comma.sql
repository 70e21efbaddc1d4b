CREATE MATERIALIZED VIEW v AS SELECT id shop qty FROM orders
-- error: 1:46: this expression cannot be read near qty; check its syntax
