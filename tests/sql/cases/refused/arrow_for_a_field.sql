CREATE MATERIALIZED VIEW v AS SELECT buyer->name AS name FROM orders
-- error: 1:43: a field of a STRUCT is written with a dot: s.field; for one of a JSON text write get_json_object with its path, such as '$.field'
