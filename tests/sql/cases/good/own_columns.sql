CREATE MATERIALIZED VIEW own_columns AS
SELECT id, _topic AS topic, _partition AS part, _offset AS o, _arrival AS came, _key IS NULL AS
  keyless FROM orders;
