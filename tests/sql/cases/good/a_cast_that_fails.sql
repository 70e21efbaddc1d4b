-- A record whose text is no number is dead for this view alone.
CREATE MATERIALIZED VIEW a_cast_that_fails AS
SELECT id, CAST(body AS DOUBLE) AS number FROM orders WHERE NOT body LIKE '{%' AND body <> 'no
  JSON' OR id LIKE '%11';
