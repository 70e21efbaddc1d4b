CREATE MATERIALIZED VIEW v AS SELECT lines.skus AS skus, lines[0].skuu AS sku FROM orders
-- error: 1:44: lines has no field skus (did you mean sku?); its fields are sku, qty, price
-- error: 1:67: lines[0] has no field skuu (did you mean sku?); its fields are sku, qty, price
