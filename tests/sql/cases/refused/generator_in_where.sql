CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE explode(tags) = 'a'
-- error: 1:59: explode() makes several rows of one, and cannot stand within an expression; write FROM ... LATERAL VIEW explode(x) t AS c, and use c here
