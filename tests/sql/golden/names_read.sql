-- case: names in backquotes may have any characters
CREATE STREAM s (`user-id` STRING, `order` INT, `größe` DOUBLE, `weird name` STRING, `a.b` INT, `it's "x"` INT,
  `{0}` INT, `1st` INT, `日本` STRUCT<`in ner`: INT>, `ts time` TIMESTAMP NOT NULL,
  WATERMARK FOR `ts time` AS `ts time`) WITH (key = 'user-id');
CREATE MATERIALIZED VIEW v AS
SELECT s.`user-id`, `ORDER` + `{0}` AS `the sum`, `größe` AS `Größe (cm)`, `a.b`, `it's "x"`, `日本`.`in ner` AS x
FROM s AS `s` WHERE `weird name` <> '`' AND `1st` > 0;
CREATE MATERIALIZED VIEW w AS
SELECT window.start AS `from`, `my key`, count(*) AS `how many` FROM (SELECT `weird name` AS `my key`, `ts time` FROM s) `sub query`
WHERE `sub query`.`my key` IS NOT NULL GROUP BY window(`ts time`, '1 minute'), `my key` HAVING `how many` > 1
-- stream: s (user-id STRING, order INT, größe DOUBLE, weird name STRING, a.b INT, it's "x" INT, {0} INT, 1st INT, 日本 STRUCT<`in ner`: INT>, ts time TIMESTAMP NOT NULL) from s, time ts time - 0 us, key user-id, timestamps None
-- view: v, 0 us
-- from: s
-- where: weird name <> '`' and 1st > 0
-- output: user-id = user-id
-- output: the sum = order + {0}
-- output: Größe (cm) = größe
-- output: a.b = a.b
-- output: it's "x" = it's "x"
-- output: x = 日本.`in ner`
-- view: w, 0 us
-- from: s
-- output: my key = weird name
-- output: ts time = ts time
-- where: my key is not null
-- window: 60000000 us
-- key: key_0 = my key
-- call: call_0 = count()
-- having: call_0 > 1
-- output: from = _window_start
-- output: my key = key_0
-- output: how many = call_0
