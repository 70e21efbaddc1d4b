CREATE MATERIALIZED VIEW hops_grouped_by_others AS
SELECT shop, max(window_end) AS last, count(*) AS n FROM HOP(TABLE orders, DESCRIPTOR(ts), '30
  seconds', '1 minute') GROUP BY shop;
