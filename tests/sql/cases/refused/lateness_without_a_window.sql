CREATE MATERIALIZED VIEW v WITH (allowed_lateness = '1 minute') AS SELECT shop, count(*) AS n FROM orders GROUP BY shop
-- error: 1:53: allowed_lateness of v: without a window no record is ever late; remove it, or group by window(...)
