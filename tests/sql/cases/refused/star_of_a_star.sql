CREATE MATERIALIZED VIEW v AS SELECT *.* FROM clicks;
CREATE MATERIALIZED VIEW w AS SELECT *.a.* FROM clicks;
-- error: 1:38: * has no fields; write * alone, or name the columns
-- error: 2:38: * has no fields; write * alone, or name the columns
