CREATE MATERIALIZED VIEW groups_without_calls AS
SELECT shop, qty FROM orders GROUP BY shop, qty;
