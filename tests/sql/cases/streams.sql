-- The streams that all cases share. case_log.py draws their records.

-- Every kind of column.
CREATE STREAM orders (
  id STRING NOT NULL, shop STRING, qty INT, units BIGINT, price DECIMAL(10,2), weight DOUBLE,
  paid BOOLEAN, day DATE, tags ARRAY<STRING>, prices MAP<STRING, DOUBLE>,
  lines ARRAY<STRUCT<sku: STRING, qty: INT, price: DECIMAL(10,2)>>,
  buyer STRUCT<name: STRING, home: STRUCT<city: STRING, zip: STRING>>,
  body STRING, shipped TIMESTAMP, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS
) WITH (key = 'shop');

-- Some records come twice.
CREATE STREAM clicks (
  id STRING NOT NULL, user STRING, page STRING, ms BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (unique = 'id', unique_within = '1 hour');

-- No event time.
CREATE STREAM notes (author STRING, text STRING, stars INT);

-- Two shops with columns of their own.
CREATE STREAM north (
  order_id STRING NOT NULL, amount DECIMAL(8,2), items INT, at TIMESTAMP NOT NULL,
  WATERMARK FOR at AS at - INTERVAL 10 SECONDS
);
CREATE STREAM south (
  nr BIGINT NOT NULL, total DOUBLE, items BIGINT, coupon STRING, sold_at TIMESTAMP NOT NULL,
  WATERMARK FOR sold_at AS sold_at - INTERVAL 1 MINUTE
);
