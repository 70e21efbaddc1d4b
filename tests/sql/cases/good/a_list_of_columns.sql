CREATE STREAM a_list_of_columns_below (name, number) AS SELECT shop, qty + 1 FROM orders;
CREATE MATERIALIZED VIEW a_list_of_columns (shop, most) AS
SELECT name, max(number) FROM a_list_of_columns_below GROUP BY name;
