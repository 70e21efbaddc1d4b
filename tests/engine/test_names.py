"""Names in quotes reach every room: the decoder, Spark, the store, sinks and the topics of records.

Method: a stream and views whose names have blanks, quotes, dots, braces, reserved words and letters
of other scripts, in both gears, against rows worked out by hand and against the reference.
"""

import json

import pytest

from headrace.testing import harness

pytestmark = pytest.mark.spark

NAMES = """
CREATE STREAM s (
  `user-id` STRING NOT NULL, `order` INT, `größe` DOUBLE, `a.b` INT, `it's "x"` INT, `{0}` INT,
  `日本` STRUCT<`in ner`: INT, `or.der`: INT>, `ts time` TIMESTAMP NOT NULL,
  WATERMARK FOR `ts time` AS `ts time`
) WITH (key = 'user-id', unique = 'user-id', unique_within = '1 hour');
CREATE MATERIALIZED VIEW plain AS
SELECT `user-id`, `order` + `{0}` AS `the {sum}`, `größe` AS `Größe (cm)`, `a.b`, `it's "x"`,
  `日本`.`in ner` AS `日本.in`, `日本` FROM s WHERE `a.b` > 0;
CREATE MATERIALIZED VIEW grouped AS
SELECT window.start AS `from`, `my "key"`, count(*) AS `how many`, max(`日本`.`or.der`) AS `max'`
FROM (SELECT `größe` > 1 AS `my "key"`, `日本`, `ts time` FROM s) AS `sub query`
GROUP BY window(`ts time`, '1 minute'), `sub query`.`my "key"` HAVING `how many` > 0;
CREATE SINK k FROM grouped WITH (topic = 'k');
"""
RECORDS = [
    {"user-id": "a", "order": 1, "größe": 1.5, "a.b": 1, "it's \"x\"": 7, "{0}": 2,
     "日本": {"in ner": 3, "or.der": 4}, "ts time": "2026-01-01T00:00:01Z"},
    {"user-id": "b", "order": 10, "größe": 2.5, "a.b": 0, "{0}": 2,
     "ts time": "2026-01-01T00:00:02Z"},
    {"user-id": "a", "order": 5, "größe": 9, "ts time": "2026-01-01T00:00:03Z"},
]  # fmt: skip


@pytest.mark.parametrize("gear", ["short", "long"])
def test_names_in_quotes_reach_every_room(gear: str) -> None:
    with harness(NAMES) as h:
        h.append("s", RECORDS, partition=0)
        h.turn(gear=gear)
        assert h.rows("plain") == [
            {"user-id": "a", "the {sum}": 3, "Größe (cm)": 1.5, "a.b": 1, "it's \"x\"": 7,
             "日本.in": 3, "日本": {"in ner": 3, "or.der": 4}}
        ]  # fmt: skip
        [row] = h.rows("grouped")
        assert (row['my "key"'], row["how many"], row["max'"]) == (True, 2, 4)
        [told] = h.topic("k")
        assert json.loads(told["value"]) | {"from": None} == {
            "from": None, 'my "key"': True, "how many": 2, "max'": 4,
            "_closed": False,
        }  # fmt: skip
        h.audit()
