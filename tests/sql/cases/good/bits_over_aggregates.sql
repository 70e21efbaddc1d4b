-- oracle: spark
CREATE MATERIALIZED VIEW bits_over_aggregates AS
SELECT shop, max(qty) & 3 | 4 AS m, min(qty) & 1 ^ 2 AS x FROM orders GROUP BY shop;
