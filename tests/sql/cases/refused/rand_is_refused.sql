CREATE MATERIALIZED VIEW v AS SELECT id FROM orders WHERE rand() < 0.1
-- error: 1:59: rand gives another answer every time, so a replay would differ; let the producer put the value into the record
