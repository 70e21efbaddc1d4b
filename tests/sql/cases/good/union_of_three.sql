CREATE MATERIALIZED VIEW union_of_three AS
SELECT author AS who, text AS what FROM notes UNION ALL SELECT user, page FROM clicks UNION ALL
  SELECT shop, CAST(NULL AS STRING) AS what FROM orders WHERE paid;
