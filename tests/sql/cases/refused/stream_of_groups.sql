CREATE STREAM s AS SELECT shop, count(*) AS n FROM orders GROUP BY shop
-- error: 1:15: the rows of a stream are records, and those of s are groups, which change; write CREATE MATERIALIZED VIEW, or CREATE VIEW for a name alone
