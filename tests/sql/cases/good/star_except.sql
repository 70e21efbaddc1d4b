CREATE MATERIALIZED VIEW star_except AS
SELECT * EXCEPT (tags, prices, lines, buyer, body) FROM orders WHERE paid;
