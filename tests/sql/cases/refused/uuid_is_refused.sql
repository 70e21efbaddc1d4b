CREATE MATERIALIZED VIEW v AS SELECT uuid() AS u FROM orders
-- error: 1:38: uuid gives another answer every time, so a replay would differ; let the producer put the value into the record
