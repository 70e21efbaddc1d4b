CREATE MATERIALIZED VIEW duplicates_are_left_out AS
SELECT id, user, page, ts FROM clicks;
