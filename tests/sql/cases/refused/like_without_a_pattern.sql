CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE shop LIKE
-- error: 1:64: this expression cannot be read near LIKE; check its syntax
