CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE qty > 1 AND
-- error: 1:67: this expression cannot be read near AND; check its syntax
