CREATE MATERIALIZED VIEW v AS SELECT array(nope, body)[0] AS x, ARRAY[nope] AS y FROM orders
-- error: 1:44: orders has no column nope; its columns are id, shop, qty, units, price, weight, paid, day, tags, prices, lines, buyer, body, shipped, ts
-- error: 1:71: orders has no column nope; its columns are id, shop, qty, units, price, weight, paid, day, tags, prices, lines, buyer, body, shipped, ts
