CREATE MATERIALIZED VIEW case_expressions AS
SELECT id, CASE shop WHEN 'east' THEN 1 WHEN 'west' THEN 2 ELSE 0 END AS side, CASE WHEN qty > 2
  THEN 'many' WHEN qty IS NULL THEN 'unknown' END AS how_many FROM orders;
