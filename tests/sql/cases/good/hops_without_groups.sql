CREATE MATERIALIZED VIEW hops_without_groups AS
SELECT id, shop, window_start, window_end FROM HOP(TABLE orders, DESCRIPTOR(ts), '30 seconds', '1
  minute');
