CREATE MATERIALIZED VIEW v AS SELECT tags[0) AS tag FROM orders
-- error: 1:42: [ is never closed; write ] before AS
