CREATE MATERIALIZED VIEW functions_of_hopping_edges AS
SELECT date_format(window.start, 'HH:mm:ss') AS start, count(*) AS n, count(*) % 3 AS rest FROM
  orders GROUP BY window(ts, '1 minute', '30 seconds');
