CREATE MATERIALIZED VIEW nested_subqueries AS
SELECT twice FROM (SELECT q * 2 AS twice FROM (SELECT qty AS q FROM orders WHERE qty <> 1) WHERE q
  > 0) WHERE twice < 10;
