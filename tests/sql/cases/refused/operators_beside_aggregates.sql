CREATE MATERIALIZED VIEW a AS
SELECT shop, count(*) AS n FROM orders GROUP BY shop, window(ts, '2 minutes', '1 minute') HAVING shop RLIKE 'x' AND n > 1;
CREATE MATERIALIZED VIEW b AS
SELECT shop, max(id) AS id FROM orders GROUP BY shop, window(ts, '2 minutes', '1 minute') HAVING NOT (shop ILIKE 'x') OR max(id) RLIKE 'y';
CREATE MATERIALIZED VIEW c AS SELECT count(*) > qty << 1 AS y FROM orders GROUP BY qty, window(ts, '2 minutes', '1 minute');
CREATE MATERIALIZED VIEW d AS SELECT struct(count(*) AS n, shop) AS s FROM orders GROUP BY shop, window(ts, '2 minutes', '1 minute');
-- error: 2:98: RLIKE cannot be computed beside an aggregate of windows that overlap; write regexp_like(shop, 'x')
-- error: 4:122: RLIKE cannot be computed beside an aggregate of windows that overlap; compute it when you read the view
-- error: 5:49: << cannot be computed beside an aggregate of windows that overlap; write shiftleft(qty, 1)
-- error: 6:38: struct() cannot be applied to an aggregate of windows that overlap; write named_struct('n', count(*), 'shop', shop)
