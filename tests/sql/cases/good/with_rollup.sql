CREATE MATERIALIZED VIEW with_rollup AS
SELECT author, stars, count(*) AS n FROM notes GROUP BY author, stars WITH ROLLUP;
