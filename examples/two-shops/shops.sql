-- The shop in the north sends amounts as text, and times in ISO 8601.
CREATE STREAM north (
  order_id STRING NOT NULL,
  customer STRING,
  amount DECIMAL(10,2),
  created_at TIMESTAMP NOT NULL,
  WATERMARK FOR created_at AS created_at - INTERVAL 1 MINUTE
);

-- The shop in the south sends cents, and times in seconds since 1970.
CREATE STREAM south (
  nr BIGINT NOT NULL,
  total_cents BIGINT,
  sold TIMESTAMP FORMAT 'seconds' NOT NULL,
  WATERMARK FOR sold AS sold - INTERVAL 1 MINUTE
);

-- The orders of both. The third column is the event time of either, and so of all.
CREATE STREAM orders AS
SELECT 'north' AS shop, order_id AS id, created_at AS ordered_at, amount FROM north
UNION ALL
SELECT 'south', CAST(nr AS STRING), sold, CAST(total_cents / 100.0 AS DECIMAL(10,2)) FROM south;

CREATE MATERIALIZED VIEW revenue AS
SELECT window.start AS start, shop, count(*) AS orders, sum(amount) AS total
FROM orders
GROUP BY window(ordered_at, '10 minutes'), ROLLUP (shop);

CREATE MATERIALIZED VIEW large_orders AS
SELECT shop, id, amount, ordered_at FROM orders WHERE amount >= 80;
