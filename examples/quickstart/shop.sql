-- Card payments of a shop, as its tills send them.
CREATE STREAM payments (
  id STRING NOT NULL,
  card STRING NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  country STRING,
  ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS
) WITH (topic = 'payments', format = 'json', key = 'card');

-- What was spent in every minute, by country.
CREATE MATERIALIZED VIEW spend_per_minute
WITH (allowed_lateness = '10 minutes') AS
SELECT window.start AS minute, country, count(*) AS n, sum(amount) AS total
FROM payments
GROUP BY window(ts, '1 minute'), country;

-- Who pays at least 20 in one go, over all time.
CREATE MATERIALIZED VIEW large_payments AS
SELECT card, count(*) AS n, sum(amount) AS total, max(amount) AS largest, min(ts) AS first_at
FROM payments
WHERE amount >= 20
GROUP BY card
HAVING count(*) > 1;
