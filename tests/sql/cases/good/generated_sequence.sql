-- oracle: spark
CREATE MATERIALIZED VIEW generated_sequence AS
SELECT id, step FROM orders LATERAL VIEW explode(sequence(1, qty)) s AS step WHERE qty > 0;
