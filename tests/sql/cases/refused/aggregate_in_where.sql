CREATE MATERIALIZED VIEW v AS SELECT shop FROM orders WHERE count(*) > 1 GROUP BY shop
-- error: 1:61: WHERE looks at single records; move the aggregate to HAVING
