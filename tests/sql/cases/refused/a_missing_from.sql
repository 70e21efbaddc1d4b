CREATE MATERIALIZED VIEW v AS SELECT id
-- error: 1:31: FROM is missing; write SELECT ... FROM <stream>
