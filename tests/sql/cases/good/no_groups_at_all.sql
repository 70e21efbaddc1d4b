CREATE MATERIALIZED VIEW no_groups_at_all AS
SELECT count(*) AS n, sum(units) AS units, max(ts) AS newest FROM orders;
