CREATE MATERIALIZED VIEW groups_by_own_columns AS
SELECT _partition AS part, max(_offset) AS newest, count(*) AS n FROM clicks GROUP BY _partition;
