CREATE MATERIALIZED VIEW quoted_names AS
SELECT id AS `the id`, buyer.`name` AS `who?`, `qty` + 1 AS `größer als 1`
FROM orders AS `my orders` WHERE `my orders`.`paid`;
