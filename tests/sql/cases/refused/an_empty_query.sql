CREATE MATERIALIZED VIEW v AS
-- error: 1:28: SELECT is expected here, but the statement ends
