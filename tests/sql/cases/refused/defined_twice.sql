CREATE MATERIALIZED VIEW v AS SELECT id FROM orders;
CREATE VIEW V AS SELECT id FROM clicks
-- error: 2:1: V is defined at case:1:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one
