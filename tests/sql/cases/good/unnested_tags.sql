CREATE MATERIALIZED VIEW unnested_tags AS
SELECT id, tag FROM orders CROSS JOIN UNNEST(tags) AS t(tag);
