CREATE MATERIALIZED VIEW the_same_set_twice AS
SELECT author, count(*) AS n FROM notes GROUP BY GROUPING SETS ((author), (author), ());
