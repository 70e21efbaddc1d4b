CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE prize > 3
-- error: 1:59: orders has no column prize (did you mean price?); its columns are id, shop, qty, units, price, weight, paid, day, tags, prices, lines, buyer, body, shipped, ts
