CREATE MATERIALIZED VIEW v AS SELECT * EXCEPT (tagz) FROM orders
-- error: 1:48: EXCEPT tagz: there is no such column (did you mean tags?)
