CREATE MATERIALIZED VIEW v AS SELECT id FROM order
-- error: 1:46: there is no stream or view order (did you mean orders?); define it with CREATE STREAM or CREATE VIEW, or correct its name
