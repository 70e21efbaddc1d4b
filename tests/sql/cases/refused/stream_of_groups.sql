CREATE STREAM s AS SELECT shop, count(*) AS n FROM orders GROUP BY shop
-- error: 1:15: s is grouped, and the rows of a stream are records, not groups; write CREATE MATERIALIZED VIEW, or CREATE VIEW for a name alone
