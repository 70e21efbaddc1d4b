CREATE MATERIALIZED VIEW bits_of_groups AS
SELECT shop, bit_and(qty) AS a, bit_or(qty) AS o, bit_xor(qty) AS x FROM orders GROUP BY shop;
