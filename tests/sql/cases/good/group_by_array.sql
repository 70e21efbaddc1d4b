CREATE MATERIALIZED VIEW group_by_array AS
SELECT tags, count(*) AS n, max(id) AS last FROM orders GROUP BY tags;
