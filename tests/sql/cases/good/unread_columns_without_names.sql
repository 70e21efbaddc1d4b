-- Nothing reads the second column, so it needs no name.
CREATE MATERIALIZED VIEW unread_columns_without_names AS
WITH all_of_them AS (SELECT shop, qty + 1 FROM orders UNION ALL SELECT page, ms FROM clicks)
SELECT shop, length(shop) AS size FROM all_of_them WHERE shop IS NOT NULL;
