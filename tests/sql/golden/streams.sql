CREATE STREAM payments (
  id STRING NOT NULL, card STRING NOT NULL, amount DECIMAL(12,2), Country STRING, items BIGINT,
  price DOUBLE, tags ARRAY<STRING>, address STRUCT<city: STRING, `zip code`: STRING>,
  `date` DATE, ts TIMESTAMP NOT NULL, seen TIMESTAMP,
  WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS
) WITH (topic = 'payments', format = 'json', key = 'card');

CREATE STREAM notes (text STRING);
