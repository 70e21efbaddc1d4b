CREATE STREAM streams_upon_streams_sales AS
SELECT 'north' AS shop, CAST(amount AS DOUBLE) AS total, at FROM north UNION ALL SELECT 'south' AS shop, total, sold_at FROM south;
CREATE STREAM streams_upon_streams_big AS SELECT * FROM streams_upon_streams_sales WHERE total > 6;
CREATE OR REPLACE MATERIALIZED VIEW streams_upon_streams AS
SELECT window.start AS start, shop, sum(total) AS total FROM streams_upon_streams_big GROUP BY window(at, '1 minute'), shop;
