CREATE MATERIALIZED VIEW two_common_tables AS
WITH a AS (SELECT id, qty + 1 AS q, ts FROM orders), b AS (SELECT id, q * 2 AS q, ts FROM a WHERE
  q > 0) SELECT window.start AS start, sum(q) AS q FROM b GROUP BY window(ts, '1 minute');
