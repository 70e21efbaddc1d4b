-- oracle: spark
CREATE MATERIALIZED VIEW text_functions_of_spark AS
SELECT id, initcap(shop) AS cap, lpad(id, 6, '0') AS padded, split(body, ',')[0] AS part,
  regexp_extract(id, '([a-z])([0-9]+)', 2) AS digits, translate(shop, 'est', 'EST') AS t, sha2(id,
  256) AS hash, levenshtein(shop, 'east') AS away, format_number(price, 1) AS f FROM orders;
