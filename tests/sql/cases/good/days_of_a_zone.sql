CREATE MATERIALIZED VIEW days_of_a_zone
WITH (time_zone = 'America/New_York') AS
SELECT window.start AS day, shop, count(*) AS n FROM orders GROUP BY window(ts, '1 day'), shop;
