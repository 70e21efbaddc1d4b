-- Plain columns and arithmetic.
CREATE MATERIALIZED VIEW everyday_columns AS
SELECT id, qty + 1 AS more, units * 2 AS twice, price * 2 AS double_price, weight / 2 AS half,
  -qty AS negative, ts FROM orders WHERE qty > 0 OR qty IS NULL;
