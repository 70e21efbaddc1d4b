CREATE MATERIALIZED VIEW text_functions AS
SELECT id, upper(shop) AS loud, length(body) AS len, concat(id, '-', shop) AS both, substring(id,
  1, 2) AS head, trim(shop) AS trimmed, replace(shop, 's', 'z') AS z, reverse(shop) AS back FROM
  orders;
