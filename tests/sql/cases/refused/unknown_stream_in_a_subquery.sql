CREATE MATERIALIZED VIEW v AS SELECT id FROM (SELECT id FROM oders) AS o
-- error: 1:62: there is no stream or view oders (did you mean orders?); define it with CREATE STREAM or CREATE VIEW, or correct its name
