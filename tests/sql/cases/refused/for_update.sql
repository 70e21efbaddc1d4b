CREATE MATERIALIZED VIEW v AS SELECT shop FROM orders FOR UPDATE
-- error: 1:55: FOR UPDATE locks rows of a table, and a view has none to lock; remove it
