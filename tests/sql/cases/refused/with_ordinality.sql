CREATE MATERIALIZED VIEW v AS SELECT t.tag FROM orders CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t (tag, place)
-- error: 1:80: WITH ORDINALITY is not supported; write LATERAL VIEW posexplode(x) t AS pos, value, which counts from 0
