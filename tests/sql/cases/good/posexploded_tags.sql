CREATE MATERIALIZED VIEW posexploded_tags AS
SELECT id, posexplode(tags) AS (place, tag) FROM orders;
