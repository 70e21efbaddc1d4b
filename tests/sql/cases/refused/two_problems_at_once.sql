CREATE MATERIALIZED VIEW v AS SELECT shopp, uper(id) AS id FROM orders
-- error: 1:38: orders has no column shopp (did you mean shop?); its columns are id, shop, qty, units, price, weight, paid, day, tags, prices, lines, buyer, body, shipped, ts
-- error: 1:45: there is no function uper() (did you mean upper?); all of Spark's own can be called
