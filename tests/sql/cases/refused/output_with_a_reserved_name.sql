CREATE MATERIALIZED VIEW v AS SELECT id AS _events FROM orders
-- error: 1:44: output name _events: names that start with _ are reserved; drop the underscore; write AS events
