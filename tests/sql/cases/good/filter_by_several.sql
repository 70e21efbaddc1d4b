CREATE MATERIALIZED VIEW filter_by_several AS
SELECT id, shop FROM orders WHERE shop IN ('east', 'west') AND NOT paid AND price BETWEEN 0 AND 50;
