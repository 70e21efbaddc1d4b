-- oracle: spark
CREATE MATERIALIZED VIEW fields_called_as_words AS
SELECT id, flags.true AS t, flags.select AS s, flags.not + flags.null AS n
FROM (SELECT id, map('true', qty, 'select', 2, 'not', 3, 'null', 4, 'false', 5) AS flags FROM orders)
WHERE flags.false > 1;
