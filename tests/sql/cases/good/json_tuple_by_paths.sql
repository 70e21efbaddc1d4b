-- oracle: spark
CREATE MATERIALIZED VIEW json_tuple_by_paths AS
SELECT get_json_object(body, '$.kind') AS kind, count(*) AS n FROM orders GROUP BY
  get_json_object(body, '$.kind');
