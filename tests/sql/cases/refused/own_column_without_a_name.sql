CREATE MATERIALIZED VIEW v AS SELECT id, _offset FROM orders
-- error: 1:42: an output cannot be called _offset, which is a record's own; write _offset AS offset
