CREATE STREAM computed_columns_orders (
  id STRING NOT NULL, raw STRING FROM 'ts', qty INT, units BIGINT,
  at TIMESTAMP AS CAST(raw AS TIMESTAMP), both BIGINT AS qty + units,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (topic = 'orders');
CREATE MATERIALIZED VIEW computed_columns AS
SELECT window.start AS start, count(*) AS n, sum(both) AS total
FROM computed_columns_orders GROUP BY window(at, '1 minute');
