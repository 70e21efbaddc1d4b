CREATE TABLE cards (card STRING PRIMARY KEY, holder STRING);
CREATE MATERIALIZED VIEW v AS SELECT holder FROM cards
-- error: 1:8: CREATE TABLE (changelog topics) is not built yet; read the topic as a stream: CREATE STREAM
