CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DECIMAL(12,2), Country STRING, items BIGINT,
  price DOUBLE, tags ARRAY<STRING>, address STRUCT<city: STRING, `zip code`: STRING>,
  `date` DATE, ts TIMESTAMP NOT NULL, seen TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS
) WITH (topic = 'payments', format = 'json', key = 'card');

CREATE STREAM notes (text STRING);

CREATE STREAM orders (
  id STRING NOT NULL, shop STRING, tags ARRAY<STRING>, prices MAP<STRING, DOUBLE>,
  lines ARRAY<STRUCT<sku: STRING, qty: INT>>, buyer STRUCT<Name: STRING, home: STRUCT<city: STRING>>,
  body STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS
);
