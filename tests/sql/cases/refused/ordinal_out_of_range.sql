CREATE MATERIALIZED VIEW v AS SELECT shop, count(*) AS n FROM orders GROUP BY 3
-- error: 1:79: GROUP BY 3: there are 2 outputs
