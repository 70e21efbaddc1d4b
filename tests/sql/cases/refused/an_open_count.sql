CREATE MATERIALIZED VIEW v AS SELECT count(* AS n FROM orders;
CREATE MATERIALIZED VIEW w AS SELECT sum(CAST(qty AS INT) AS n FROM orders;
CREATE MATERIALIZED VIEW x AS SELECT CAST(qty AS INT FROM orders;
-- error: 1:43: ( is never closed; write ) before AS
-- error: 2:41: ( is never closed; write ) before AS
-- error: 3:42: ( is never closed; write ) before FROM
