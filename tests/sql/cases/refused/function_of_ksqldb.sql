CREATE MATERIALIZED VIEW v AS SELECT shop, latest_by_offset(qty) AS qty FROM orders GROUP BY shop
-- error: 1:44: latest_by_offset() is not known here; write last(x), and last(x) IGNORE NULLS where nulls do not count
