CREATE MATERIALIZED VIEW v AS SELECT id FROM main.orders
-- error: 1:50: streams have no catalog or schema; write the stream's name alone
