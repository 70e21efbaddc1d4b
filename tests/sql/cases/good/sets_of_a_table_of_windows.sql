CREATE MATERIALIZED VIEW sets_of_a_table_of_windows AS
SELECT window_start, shop, count(*) AS n
FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
GROUP BY GROUPING SETS ((1, shop), (WINDOW_START));
