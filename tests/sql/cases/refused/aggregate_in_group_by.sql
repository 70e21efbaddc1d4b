CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM orders GROUP BY sum(qty)
-- error: 1:73: GROUP BY cannot use an aggregate; group by what it is computed from
