CREATE MATERIALIZED VIEW calls_over_keys_that_fail AS
SELECT body, concat(CAST(year(to_date(body)) AS STRING), '/', count(*)) AS label
FROM (SELECT coalesce(body, '2026-02-01') AS body FROM orders WHERE body IS NULL OR body LIKE 'n%')
GROUP BY body;
