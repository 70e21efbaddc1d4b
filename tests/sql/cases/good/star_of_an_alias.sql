CREATE MATERIALIZED VIEW star_of_an_alias AS
SELECT n.*, upper(n.author) AS loud FROM notes AS n;
