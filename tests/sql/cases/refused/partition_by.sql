CREATE MATERIALIZED VIEW v AS SELECT id FROM orders PARTITION BY shop
-- error: 1:53: PARTITION BY is not needed: GROUP BY brings equal values together from all partitions; remove it. What a stream writes to a topic gets another key by WITH (topic = '...', key = '<column>')
