-- oracle: spark
CREATE MATERIALIZED VIEW array_elements AS
SELECT id, get(tags, 0) AS first, element_at(tags, -1) AS last, array_join(tags, '+', '?') AS
  text, slice(tags, 1, 2) AS two, array_distinct(tags) AS different, sort_array(tags, false) AS
  sorted, array_position(tags, 'a') AS place, arrays_overlap(tags, array('a', 'new')) AS some FROM
  orders WHERE size(tags) > 0;
