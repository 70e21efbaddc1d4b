CREATE MATERIALIZED VIEW having AS
SELECT shop, count(*) AS n, sum(qty) AS qty FROM orders GROUP BY shop HAVING count(*) > 5 AND
  max(qty) > 1;
