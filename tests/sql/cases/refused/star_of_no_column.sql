CREATE MATERIALIZED VIEW v AS SELECT NULL.*, upper(id).*, from_json(body, 'a INT').* FROM orders
-- error: 1:38: NULL is no column, and * stands for columns; name them
-- error: 1:46: upper(id) is no column, and * stands for columns; name them
-- error: 1:59: from_json(body, 'a INT') is no column, and * stands for columns; name them
