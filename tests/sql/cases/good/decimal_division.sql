-- oracle: spark
CREATE MATERIALIZED VIEW decimal_division AS
SELECT id, price / 3 AS third, price * price AS square, price % 2 AS rest, CAST(price AS
  DECIMAL(12,4)) / 7 AS seventh FROM orders;
