CREATE MATERIALIZED VIEW groups_without_time AS
SELECT author, count(*) AS n, sum(stars) AS stars, min(text) AS least FROM notes GROUP BY author;
