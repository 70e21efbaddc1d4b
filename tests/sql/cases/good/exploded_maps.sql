CREATE MATERIALIZED VIEW exploded_maps AS
SELECT id, explode(prices) AS (currency, price) FROM orders;
