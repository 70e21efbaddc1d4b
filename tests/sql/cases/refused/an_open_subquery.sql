CREATE MATERIALIZED VIEW v AS SELECT shop FROM (SELECT shop FROM orders WHERE qty > 1
-- error: 1:48: ( is never closed; write )
