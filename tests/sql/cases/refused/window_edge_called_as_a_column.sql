CREATE MATERIALIZED VIEW v AS SELECT window_start AS id, count(*) AS n
FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY id;
CREATE MATERIALIZED VIEW w AS SELECT window_start AS tag, count(*) AS n
FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) LATERAL VIEW explode(tags) AS tag
GROUP BY tag;
-- error: 1:38: window_start is neither grouped nor aggregated; add it to GROUP BY, or write max(window_start)
-- error: 3:38: window_start is neither grouped nor aggregated; add it to GROUP BY, or write max(window_start)
