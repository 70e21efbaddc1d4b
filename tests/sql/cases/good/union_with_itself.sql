CREATE MATERIALIZED VIEW union_with_itself AS
SELECT id, shop FROM orders WHERE qty > 0 UNION ALL SELECT id, shop FROM orders WHERE paid;
