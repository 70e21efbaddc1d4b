CREATE MATERIALIZED VIEW v AS SELECT shopp FROM orders
-- error: 1:38: orders has no column shopp (did you mean shop?); its columns are id, shop, qty, units, price, weight, paid, day, tags, prices, lines, buyer, body, shipped, ts
