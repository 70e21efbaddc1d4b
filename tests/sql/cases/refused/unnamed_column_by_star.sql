CREATE MATERIALIZED VIEW v AS SELECT * FROM (SELECT shop, upper(shop) FROM orders)
-- error: 1:38: * stands for a column without a name; add AS name to it in the query that it comes from, or name the columns here
