CREATE MATERIALIZED VIEW inlined_lines AS
SELECT id, inline(lines) AS (sku, qty, price) FROM orders;
