-- oracle: spark
CREATE MATERIALIZED VIEW elements_of_made_arrays AS
SELECT id, array(shop, body)[0] AS made, list[0] AS first, t.array[1] AS second,
  from_json(body, 'list array<int>').list[1] AS number, size(array()) AS none
FROM (SELECT id, body AS shop, shop AS body, array(shop, id) AS list, array(id, shop) AS array
  FROM orders WHERE body LIKE '{%') t;
