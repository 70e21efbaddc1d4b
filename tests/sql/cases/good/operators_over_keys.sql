-- oracle: spark
CREATE MATERIALIZED VIEW operators_over_keys AS
SELECT shop || (qty + 1) AS x, qty + 1 || shop AS y, qty < 3 = (shop <> '') AS z, 2 + qty + 1 AS w,
  NOT qty < 3 AND qty + 1 BETWEEN 1 AND 5 AS v, count(*) AS n
FROM orders GROUP BY shop, qty + 1, qty < 3, qty;
