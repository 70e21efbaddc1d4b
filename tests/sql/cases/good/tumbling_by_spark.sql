CREATE MATERIALIZED VIEW tumbling_by_spark WITH (allowed_lateness = '30 seconds') AS
SELECT window.start AS begin, shop, lower(max(shop)) AS shop_low, 100 / (count(*) - 2) AS share
FROM orders GROUP BY window(ts, '1 minute'), shop HAVING length(upper(max(shop))) >= 0;
