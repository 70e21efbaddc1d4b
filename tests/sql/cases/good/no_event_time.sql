CREATE MATERIALIZED VIEW no_event_time AS
SELECT author, text FROM notes WHERE stars >= 3;
