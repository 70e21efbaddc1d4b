-- oracle: spark
CREATE MATERIALIZED VIEW bits AS
SELECT id, qty & 3 AS a, qty | 8 AS o, qty ^ 5 AS x, ~qty AS n, shiftleft(qty, 2) AS l,
  bit_count(qty) AS c, hex(units) AS h FROM orders;
