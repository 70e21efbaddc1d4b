-- oracle: spark
CREATE MATERIALIZED VIEW maps AS
SELECT id, prices['eur'] AS eur, prices.usd AS usd, map_keys(prices) AS keys, size(prices) AS n,
  map_contains_key(prices, 'gbp') AS gbp, map_from_arrays(array('a'), array(qty))['a'] AS a FROM
  orders;
