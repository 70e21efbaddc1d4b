CREATE VIEW a_named_view_of_paid AS SELECT * FROM orders WHERE paid;
CREATE MATERIALIZED VIEW a_named_view AS
SELECT window.start AS start, count(*) AS n FROM a_named_view_of_paid GROUP BY window(ts, '1 minute');
