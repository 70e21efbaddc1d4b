CREATE MATERIALIZED VIEW v AS SELECT max(count(*)) AS n FROM orders GROUP BY shop
-- error: 1:38: max() of an aggregate is not possible; remove one of the two
