CREATE MATERIALIZED VIEW counts_without_duplicates AS
SELECT user, count(*) AS n, count(DISTINCT page) AS pages FROM clicks GROUP BY user;
