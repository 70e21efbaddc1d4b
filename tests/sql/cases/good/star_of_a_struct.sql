CREATE MATERIALIZED VIEW star_of_a_struct AS
SELECT id, buyer.* FROM orders WHERE buyer IS NOT NULL;
