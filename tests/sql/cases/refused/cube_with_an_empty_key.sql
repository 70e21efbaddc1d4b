CREATE MATERIALIZED VIEW v AS
SELECT shop, count(*) AS n FROM orders GROUP BY CUBE (shop, , paid);
-- error: 2:61: this expression cannot be read near ,; check its syntax
