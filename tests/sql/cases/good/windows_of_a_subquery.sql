CREATE MATERIALIZED VIEW windows_of_a_subquery AS
SELECT window_start, n_tags, count(*) AS n FROM (SELECT *, size(tags) AS n_tags FROM TUMBLE(TABLE
  orders, DESCRIPTOR(ts), '1 minute')) GROUP BY window_start, window_end, n_tags;
