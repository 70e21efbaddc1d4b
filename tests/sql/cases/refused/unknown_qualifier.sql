CREATE MATERIALIZED VIEW v AS SELECT o.id FROM orders
-- error: 1:38: orders has no column o.id; its columns are id, shop, qty, units, price, weight, paid, day, tags, prices, lines, buyer, body, shipped, ts
