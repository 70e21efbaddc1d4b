CREATE MATERIALIZED VIEW v AS SELECT max(count(*)) AS n FROM orders GROUP BY shop
-- error: 1:38: max() cannot take another aggregate; remove one of the two
