CREATE MATERIALIZED VIEW v AS WITH a AS (SELECT id FROM b) SELECT id FROM a
-- error: 1:57: there is no stream or view b; define it with CREATE STREAM or CREATE VIEW, or correct its name
