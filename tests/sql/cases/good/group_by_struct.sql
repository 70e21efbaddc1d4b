CREATE MATERIALIZED VIEW group_by_struct AS
SELECT buyer.home AS home, count(*) AS n FROM orders GROUP BY buyer.home;
