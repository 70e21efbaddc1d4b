CREATE MATERIALIZED VIEW distinct_expressions AS
SELECT DISTINCT upper(shop) AS shop, 1 AS one FROM orders WHERE shop IS NOT NULL;
