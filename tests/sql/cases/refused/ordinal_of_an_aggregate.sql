CREATE MATERIALIZED VIEW v AS SELECT shop, count(*) AS n FROM orders GROUP BY 2
-- error: 1:44: GROUP BY cannot use an aggregate; group by what it is computed from
