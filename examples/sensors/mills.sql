-- What the devices send: nested JSON, with the time in milliseconds.
CREATE STREAM readings (
  device STRING FROM '$.meta.device' NOT NULL,
  site STRUCT<name: STRING, floor: INT> FROM '$.meta.site',
  volts DOUBLE FROM '$.battery.volts',
  readings ARRAY<STRUCT<probe: STRING, celsius: DOUBLE>>,
  ts TIMESTAMP FROM '$.meta.ts' FORMAT 'millis' NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS
) WITH (topic = 'readings');

-- A row for each probe that a message has.
CREATE MATERIALIZED VIEW temperatures AS
SELECT window.start AS start, site.name AS site, reading.probe AS probe, count(*) AS n,
  round(avg(reading.celsius), 2) AS mean, max(reading.celsius) AS highest
FROM readings LATERAL VIEW explode(readings) r AS reading
GROUP BY window(ts, '10 minutes'), site.name, reading.probe;

-- The newest voltage of each device.
CREATE MATERIALIZED VIEW batteries AS
SELECT device, last(volts) AS volts, max(ts) AS seen_at FROM readings GROUP BY device;
