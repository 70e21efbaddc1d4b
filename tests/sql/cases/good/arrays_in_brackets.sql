-- As Flink and others write them.
CREATE MATERIALIZED VIEW arrays_in_brackets AS
SELECT id, ARRAY[qty, 2] AS both, ARRAY[shop, 'x'][1] AS x, MAP['shop', shop, 'id', id]['id'] AS own
FROM orders;
