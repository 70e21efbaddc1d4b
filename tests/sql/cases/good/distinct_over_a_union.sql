CREATE MATERIALIZED VIEW distinct_over_a_union AS
SELECT DISTINCT who FROM (SELECT author AS who FROM notes UNION ALL SELECT user FROM clicks);
