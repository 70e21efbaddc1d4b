-- oracle: spark
CREATE MATERIALIZED VIEW mathematics AS
SELECT id, round(weight, 1) AS r, floor(weight) AS f, ceil(price) AS c, abs(qty) AS a, pmod(qty,
  3) AS p, qty % 2 AS m, qty DIV 2 AS d, power(2, qty) AS pw, sqrt(abs(weight)) AS s,
  greatest(qty, 1, NULL) AS g, least(units, 10) AS l, sign(price) AS si, bround(price, 1) AS b
  FROM orders;
