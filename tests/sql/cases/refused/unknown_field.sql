CREATE MATERIALIZED VIEW v AS SELECT buyer.nam AS name FROM orders
-- error: 1:44: buyer has no field nam (did you mean name?); its fields are name, home
