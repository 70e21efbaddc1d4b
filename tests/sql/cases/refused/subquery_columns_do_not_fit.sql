CREATE MATERIALIZED VIEW v AS SELECT a FROM (SELECT id, shop FROM orders) AS t (a)
-- error: 1:81: t has 2 columns, and the list names 1; write one name for each
