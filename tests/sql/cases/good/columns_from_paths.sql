CREATE STREAM columns_from_paths_orders (
  id STRING NOT NULL, city STRING FROM '$.buyer.home.city', first_tag STRING FROM '$.tags[0]',
  euros DOUBLE FROM '$.prices.eur', at TIMESTAMP FROM 'ts' NOT NULL,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
) WITH (topic = 'orders');
CREATE MATERIALIZED VIEW columns_from_paths AS
SELECT window.start AS start, city, first_tag, count(*) AS n, sum(euros) AS euros
FROM columns_from_paths_orders GROUP BY window(at, '2 minutes'), city, first_tag;
