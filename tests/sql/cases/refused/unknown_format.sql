CREATE STREAM s (x INT) WITH (format = 'xml')
-- error: 1:40: format 'xml' is not built yet; write format = 'json' or 'debezium'
