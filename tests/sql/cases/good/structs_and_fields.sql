CREATE MATERIALIZED VIEW structs_and_fields AS
SELECT id, buyer.name AS name, buyer.home.city AS city, (buyer).home.zip AS zip FROM orders WHERE
  buyer.home IS NOT NULL;
