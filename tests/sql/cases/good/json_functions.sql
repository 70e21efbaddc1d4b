-- oracle: spark
CREATE MATERIALIZED VIEW json_functions AS
SELECT id, get_json_object(body, '$.a.b') AS b, get_json_object(body, '$.list[1]') AS second,
  from_json(body, 'a STRUCT<b: STRING>, kind STRING').kind AS kind, to_json(buyer) AS buyer,
  json_array_length(get_json_object(body, '$.list')) AS n FROM orders;
