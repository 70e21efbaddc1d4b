CREATE MATERIALIZED VIEW window_by_its_name AS
SELECT window AS w, count(*) AS n FROM orders GROUP BY window(ts, '1 minute');
