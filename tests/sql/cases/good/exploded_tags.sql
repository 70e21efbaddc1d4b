CREATE MATERIALIZED VIEW exploded_tags AS
SELECT id, explode(tags) AS tag FROM orders;
