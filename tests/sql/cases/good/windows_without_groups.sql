CREATE MATERIALIZED VIEW windows_without_groups AS
SELECT id, window_start, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), '1 minute') WHERE
  qty > 1;
