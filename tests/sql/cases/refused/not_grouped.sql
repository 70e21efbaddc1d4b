CREATE MATERIALIZED VIEW v AS SELECT shop, qty, count(*) AS n FROM orders GROUP BY shop
-- error: 1:44: qty is neither grouped nor aggregated; add it to GROUP BY, or write max(qty)
