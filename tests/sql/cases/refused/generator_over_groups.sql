CREATE MATERIALIZED VIEW v AS SELECT shop, id
FROM (SELECT shop, collect_list(id) AS ids FROM orders GROUP BY shop) LATERAL VIEW explode(ids) AS id;
CREATE MATERIALIZED VIEW w AS SELECT shop, explode(ids) AS id
FROM (SELECT shop, collect_list(id) AS ids FROM orders GROUP BY shop);
-- error: 2:71: a generator over groups is not built yet: the subquery is grouped already; group once, over its records, or work it out when you read the view
-- error: 3:44: a generator over groups is not built yet: the subquery is grouped already; group once, over its records, or work it out when you read the view
