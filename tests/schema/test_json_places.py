"""Where columns stand: keys and paths as users write them, and what strict decoding finds there."""

import re

import pytest

from headrace.schema import Column, parse_type
from headrace.schema.json_places import parse_place, show_place
from headrace.schema.json_strict import Dead, decode_strict

READ = [
    ("@timestamp", ("@timestamp",), "@timestamp"),
    ("a.b", ("a.b",), "a.b"),
    ("$x", ("$x",), "$x"),
    ("$.a", ("a",), "a"),
    ("$.meta.ts", ("meta", "ts"), "$.meta.ts"),
    ("$.@meta.a-b", ("@meta", "a-b"), "$.@meta.a-b"),
    ("$['a b'].c", ("a b", "c"), "$['a b'].c"),
    ('$["it\'s"][0][12]', ("it's", 0, 12), '$["it\'s"][0][12]'),
    ("$['$.a']", ("$.a",), "$['$.a']"),
    ("$.items[0].price", ("items", 0, "price"), "$.items[0].price"),
]
REFUSED = [
    ("", "'' names no part of a record"),
    ("$", "'$' names no part of a record"),
    ("$.", "unexpected '.'"),
    ("$.a..b", "unexpected '..b'"),
    ("$.a[*]", "unexpected '[*]'"),
    ("$.a[-1]", "unexpected '[-1]'"),
    ("$.*", "unexpected '.*'"),
    ("$.a[", "unexpected '['"),
    ("$[0].a", "a record is an object; begin with a key"),
]
FOUND = [
    ("INT", "$.a.b", b'{"a":{"b":1}}', 1),
    ("INT", "$.a.b", b'{"a":{}}', None),
    ("INT", "$.a.b", b'{"a":null}', None),
    ("INT", "$.a.b", b"{}", None),
    ("INT", "$.a[1]", b'{"a":[1,2]}', 2),
    ("INT", "$.a[2]", b'{"a":[1,2]}', None),
    ("STRING", "$.a[0]", b'{"a":[{"b":1.50}]}', '{"b":1.50}'),
    ("INT", "$.a[0].b", b'{"a":[{"b":3},{"b":"x"}]}', 3),
]
DEAD = [
    ("INT", "$.a.b", b'{"a":5}', "c (FROM '$.a.b'): 5 at a is not an object"),
    ("INT", "$.a.b.c", b'{"a":{"b":[1]}}', "c (FROM '$.a.b.c'): [1] at $.a.b is not an object"),
    ("INT", "$.a[0]", b'{"a":{}}', "c (FROM '$.a[0]'): {} at a is not an array"),
    ("INT", "$.a.b", b'{"a":{"b":"x"}}', "c (FROM '$.a.b'): \"x\" is not a whole number"),
    ("INT NOT NULL", "$.a.b", b'{"a":{"b":null}}', "c (FROM '$.a.b'): is null, and the column"),
    ("INT NOT NULL", "$.a.b", b'{"a":null}', "c (FROM '$.a.b'): is missing, and the column"),
    ("INT NOT NULL", "@c", b'{"c":1}', "c (FROM '@c'): is missing, and the column"),
]


def column(type: str, place: str) -> Column:
    nullable = not type.endswith(" NOT NULL")
    return Column("c", parse_type(type.removesuffix(" NOT NULL")), nullable, parse_place(place))


@pytest.mark.parametrize(("text", "steps", "shown"), READ)
def test_a_place_is_a_key_or_a_path(text: str, steps: tuple[str | int, ...], shown: str) -> None:
    assert parse_place(text) == steps
    assert show_place(steps) == shown
    assert parse_place(shown) == steps


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_no_place_is_refused_with_advice(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_place(text)


@pytest.mark.parametrize(("type", "place", "record", "value"), FOUND)
def test_a_value_is_found_at_its_place(type: str, place: str, record: bytes, value: object) -> None:
    assert decode_strict([column(type, place)], record) == {"c": value}


@pytest.mark.parametrize(("type", "place", "record", "reason"), DEAD)
def test_a_value_of_another_kind_makes_the_record_dead(
    type: str, place: str, record: bytes, reason: str
) -> None:
    with pytest.raises(Dead) as caught:
        decode_strict([column(type, place)], record)
    assert caught.value.reason.startswith(reason)
