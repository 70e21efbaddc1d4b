CREATE VIEW a_view_of_groups_counts (what, n) AS SELECT shop, count(*) AS many FROM orders GROUP BY shop;
CREATE MATERIALIZED VIEW a_view_of_groups AS SELECT what, n + 1 AS more FROM a_view_of_groups_counts AS c WHERE c.n > 2;
