CREATE MATERIALIZED VIEW subquery_in_from AS
SELECT loud, count(*) AS n FROM (SELECT upper(shop) AS loud, qty FROM orders WHERE qty > 0) AS
  positive GROUP BY loud;
