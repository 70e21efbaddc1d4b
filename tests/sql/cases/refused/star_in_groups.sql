CREATE MATERIALIZED VIEW v AS SELECT * FROM orders GROUP BY shop
-- error: 1:38: * cannot stand in a grouped view; name the columns
