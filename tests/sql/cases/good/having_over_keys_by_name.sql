-- oracle: spark
CREATE MATERIALIZED VIEW having_over_keys_by_name AS
SELECT upper(shop) AS u, count(*) AS n FROM orders GROUP BY 1
HAVING lower(u) LIKE '%a%' AND regexp_like(u, 'S') AND n > 1;
