CREATE STREAM notes (text STRING)
-- error: 1:1: notes is defined at streams.sql:20:1 already (streams, tables, views and sinks share their names, which are not case-sensitive); rename one
