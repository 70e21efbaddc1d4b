CREATE MATERIALIZED VIEW v AS SELECT shop, count(*) AS n FROM orders WHERE (qty > 1 AND paid GROUP BY shop
-- error: 1:76: ( is never closed; write ) before GROUP BY
