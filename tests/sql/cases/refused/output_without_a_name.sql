CREATE MATERIALIZED VIEW v AS SELECT id, qty + 1 FROM orders
-- error: 1:42: this output has no name; add AS name after qty + 1
