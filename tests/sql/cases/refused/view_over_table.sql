CREATE TABLE cards (card STRING PRIMARY KEY, holder STRING);
CREATE MATERIALIZED VIEW v AS SELECT holder FROM cards
-- error: 2:50: cards is a table, and views over tables are not built yet; read its rows with `headrace sql`, by HTTP or with a sink
