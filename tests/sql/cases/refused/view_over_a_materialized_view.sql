CREATE MATERIALIZED VIEW v AS SELECT id FROM orders;
CREATE MATERIALIZED VIEW w AS SELECT id FROM v
-- error: 2:46: v is a materialized view, and views over views are not built yet; write its query as CREATE VIEW or CREATE STREAM ... AS, which others can read, or read the streams that v reads
