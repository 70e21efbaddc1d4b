-- oracle: spark
CREATE MATERIALIZED VIEW arrays AS
SELECT id, tags, size(tags) AS n, array_contains(tags, 'sale') AS on_sale FROM orders WHERE tags
  IS NOT NULL;
