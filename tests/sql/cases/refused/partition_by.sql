CREATE MATERIALIZED VIEW v AS SELECT id FROM orders PARTITION BY shop
-- error: 1:53: PARTITION BY is not needed: GROUP BY brings equal values together, whatever partition they are in; remove it
