-- An array in brackets is one, also around a key; without elements, too.
CREATE MATERIALIZED VIEW empty_arrays_in_brackets AS
SELECT ARRAY[shop][0] AS shop, size(ARRAY[]) AS none, ARRAY[min(qty), max(qty)][1] AS most
FROM orders GROUP BY ARRAY[shop];
