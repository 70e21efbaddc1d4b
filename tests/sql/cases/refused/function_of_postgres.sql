CREATE MATERIALIZED VIEW v AS SELECT to_hex(qty) AS h FROM orders
-- error: 1:38: to_hex() is not known here; write hex(x)
