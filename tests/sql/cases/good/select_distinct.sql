CREATE MATERIALIZED VIEW select_distinct AS
SELECT DISTINCT shop, paid FROM orders;
