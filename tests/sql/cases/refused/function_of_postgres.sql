CREATE MATERIALIZED VIEW v AS SELECT to_hex(qty) AS h FROM orders
-- error: 1:38: there is no function to_hex() (did you mean to_xml?); all of Spark's own can be called
