"""The reference node by node, against answers worked out by hand.

Method: views are built from nodes, so that what SQL cannot say yet (unions, generators, queries
within queries) is defined before it is planned.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from headrace.log.base import Partition
from headrace.model.definitions import Project, Stream, View
from headrace.model.nodes import (
    COORDINATES,
    WATERMARK,
    WINDOW_COLUMNS,
    Aggregate,
    AssignWindows,
    Call,
    Deduplicate,
    Filter,
    Generate,
    Named,
    Node,
    Scan,
    Union,
    Window,
    call_column,
    key_column,
)
from headrace.model.nodes import Project as Select
from headrace.model.scalars import Scalar
from headrace.reference import Answer, Record, answer
from headrace.reference.unifying import common_type
from headrace.schema.types import Column, parse_type

SECOND_US = 1_000_000
KNOWN_TYPES = [
    pa.null(), pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(),
    pa.date32(), pa.timestamp("us", "UTC"), *(
        pa.decimal128(*each) for each in [(10, 2), (8, 4), (12, 4), (5, 2), (12, 2), (22, 2)]
    ),
]  # fmt: skip


def of(text: str, *refs: str) -> Scalar:
    return Scalar(text, refs)


def select(node: Node, **columns: Scalar) -> Select:
    return Select(node, tuple(Named(name, scalar) for name, scalar in columns.items()))


def stream(name: str, columns: str, **options: Any) -> Stream:
    parsed = [each.split(":") for each in columns.split()]
    types = [Column(column, parse_type(type), column != "ts") for column, type in parsed]
    time = "ts" if "ts:" in columns else None
    return Stream(name, tuple(types), name, event_time=time, **options)


S = stream("s", "i:BIGINT tags:ARRAY<STRING> m:MAP<STRING,BIGINT> ts:TIMESTAMP")
T = stream("t", "n:BIGINT at:STRING ts:TIMESTAMP")


def ask(node: Node, **topics: list[dict[str, Any]]) -> Answer:
    """Return the answer of one view over rows, one partition per topic; `ts` is in seconds."""
    log = {}
    for topic, rows in topics.items():
        records = []
        for offset, row in enumerate(rows):
            time = row.get("ts", 0)
            value = row | {"ts": f"2026-03-01T00:00:{time:02}Z"}
            records.append(Record(offset, None, None, json.dumps(value).encode()))
        log[Partition(topic, 0)] = records
    return answer(Project((S, T), (View("v", node),)), log | {Partition("t", 1): []})


def rows(found: Answer, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in found.rows["v"]]


def counts(found: Answer) -> dict[str, int]:
    return {name: count for name, count in found.counters["v"].items() if count}


NUMBERS = [{"i": 0}, {"i": 1}, {"i": 2}, {}]


def test_what_no_node_asks_for_never_fails() -> None:
    inner = select(Scan("s"), i=of("{0}", "i"), share=of("1 / {0}", "i"))
    found = ask(select(inner, i=of("{0} + 1", "i")), s=NUMBERS)
    assert rows(found, "i", "_events", "_closed") == [
        (1, 1, True), (2, 1, True), (3, 1, True), (None, 1, True),
    ]  # fmt: skip
    assert found.dead["v"] == []
    found = ask(select(inner, share=of("{0}", "share")), s=NUMBERS)
    assert rows(found, "share") == [(1.0,), (0.5,), (None,)]
    assert found.dead["v"] == [("s", 0, 0)]
    assert counts(found) == {"seen": 4, "dead": 1, "matched": 3, "pairs": 3, "folded": 3}


def test_each_condition_is_asked_of_what_the_ones_before_took() -> None:
    node = Filter(Filter(Scan("s"), of("{0} <> 0", "i")), of("1 / {0} > 0.7", "i"))
    found = ask(select(node, i=of("{0}", "i")), s=NUMBERS)
    assert rows(found, "i") == [(1,)]
    assert counts(found) == {"seen": 4, "skipped": 3, "matched": 1, "pairs": 1, "folded": 1}
    turned = Filter(Filter(Scan("s"), of("1 / {0} > 0.7", "i")), of("{0} <> 0", "i"))
    assert ask(select(turned, i=of("{0}", "i")), s=NUMBERS).dead["v"] == [("s", 0, 0)]


def test_a_scan_has_duplicates_and_a_deduplicated_one_has_not() -> None:
    records = [{"i": 1, "ts": 0}, {"i": 1, "ts": 5}, {"i": 1, "ts": 20}, {"i": 1, "ts": 21}]
    outputs = {"i": of("{0}", "i"), "w": of("second({0})", WATERMARK)}
    assert rows(ask(select(Scan("s"), **outputs), s=records), "w") == [(None,), (0,), (5,), (20,)]
    kept = Deduplicate(Scan("s"), "i", 10 * SECOND_US)
    found = ask(select(kept, **outputs), s=records)
    assert rows(found, "i", "w") == [(1, None), (1, 20)]
    assert found.counters["v"]["seen"] == 2


def test_a_union_has_the_rows_of_all_branches_under_the_names_of_the_first() -> None:
    left = select(Filter(Scan("s"), of("{0} > 0", "i")), a=of("{0}", "i"), b=of("'s'"))
    right = select(Scan("t"), n=of("10 / {0}", "n"), c=of("{0}", "at"))
    node = select(Union((left, right)), a=of("{0}", "a"), b=of("upper({0})", "b"))
    found = ask(node, s=NUMBERS, t=[{"n": 0, "at": "x"}, {"n": 5, "at": "y"}])
    assert rows(found, "a", "b") == [(1, "S"), (2, "S"), (2.0, "Y")]
    assert found.dead["v"] == [("t", 0, 0)]
    assert counts(found) == {
        "seen": 6, "skipped": 2, "dead": 1, "matched": 3, "pairs": 3, "folded": 3,
    }  # fmt: skip


def test_a_column_that_a_union_does_not_pass_on_fails_in_no_branch() -> None:
    left = select(Scan("s"), a=of("{0}", "i"), b=of("1 / {0}", "i"))
    right = select(Scan("t"), a=of("{0}", "n"), b=of("1 / {0}", "n"))
    found = ask(select(Union((left, right)), a=of("{0}", "a")), s=[{"i": 0}], t=[{"n": 0}])
    assert rows(found, "a") == [(0,), (0,)]


def test_each_record_of_a_union_is_judged_by_its_own_watermark_and_rows_close_by_the_least() -> (
    None
):
    branches = [select(Scan(name), ts=of("{0}", "ts")) for name in "st"]
    window = Window(10 * SECOND_US)
    node = select(
        Aggregate(Union(tuple(branches)), window, (), (Call("count"),)),
        second=of("second({0})", WINDOW_COLUMNS[0]),
        n=of("{0}", call_column(0)),
    )
    times = {"s": [1, 12, 2, 25], "t": [3, 4, 11]}
    found = ask(node, **{name: [{"ts": each} for each in given] for name, given in times.items()})
    # The partition t/1 is empty, so nothing is closed.
    assert sorted(rows(found, "second", "n", "_closed")) == [
        (0, 3, False), (10, 2, False), (20, 1, False),
    ]  # fmt: skip
    assert found.late["v"] == [("s", 0, 2)]
    assert counts(found) == {"seen": 7, "matched": 7, "pairs": 7, "folded": 6, "late": 1}


TAGGED = [{"i": 1, "tags": ["a", "b"]}, {"i": 2, "tags": []}, {"i": 3}, {"i": 0, "tags": ["c"]}]


@pytest.mark.parametrize(
    ("outer", "expected"),
    [
        (False, [(1, "a"), (1, "b"), (0, "c")]),
        (True, [(1, "a"), (1, "b"), (2, None), (3, None), (0, "c")]),
    ],
)
def test_a_generator_gives_a_row_for_each_element(
    outer: bool, expected: list[tuple[Any, ...]]
) -> None:
    node = Generate(Scan("s"), "explode", of("{0}", "tags"), ("tag",), outer)
    found = ask(select(node, i=of("{0}", "i"), tag=of("{0}", "tag")), s=TAGGED)
    assert rows(found, "i", "tag") == expected
    assert found.counters["v"]["seen"] == len(expected)
    assert found.counters["v"]["empty"] == (0 if outer else 2)


def test_a_record_is_one_whole_behind_a_generator() -> None:
    exploded = Generate(Scan("s"), "posexplode", of("{0}", "tags"), ("at", "i"))
    kept = Filter(exploded, of("{0} <> 'c'", "i"))
    # The generator's column hides the stream's of the same name. `b` fails, so `a` goes, too.
    outputs = {"at": of("{0}", "at"), "share": of("1 / ({0} - 1)", "at")}
    found = ask(select(kept, **outputs), s=[*TAGGED, {"tags": ["x"]}])
    assert rows(found, "at", "share") == [(0, -1.0)]
    assert found.dead["v"] == [("s", 0, 0)]
    assert counts(found) == {
        "records": 5, "dead": 1, "empty": 2, "expanded": 2,
        "seen": 2, "skipped": 1, "matched": 1, "pairs": 1, "folded": 1,
    }  # fmt: skip
    # Also where it fails as a key. Another branch of a union keeps it.
    branches = (
        select(Scan("s"), at=of("{0}", "i")),
        select(exploded, at=of("1 / ({0} - 1)", "at")),
    )
    grouped = Aggregate(Union(branches), None, (of("{0}", "at"),), (Call("count"),))
    found = ask(select(grouped, n=of("{0}", call_column(0))), s=TAGGED)
    assert sorted(rows(found, "n")) == [(1,), (1,), (1,), (1,), (1,)]
    assert counts(found) == {
        "records": 4, "dead": 1, "empty": 2, "expanded": 1,
        "seen": 5, "matched": 5, "pairs": 5, "folded": 5,
    }  # fmt: skip


def test_what_fails_or_is_left_out_before_a_generator_is_counted_as_a_record() -> None:
    below = Filter(Scan("s"), of("1 / {0} > 0.3", "i"))
    node = Generate(below, "explode", of("{0}", "m"), ("k", "v"))
    given = [{"i": i, "m": {"y": i, "z": i}} for i in (0, 1, 5)]
    found = ask(select(node, k=of("{0}", "k"), v=of("{0}", "v")), s=given)
    assert rows(found, "k", "v") == [("y", 1), ("z", 1)]
    assert found.dead["v"] == [("s", 0, 0)]
    assert counts(found) == {
        "records": 3, "left_out": 1, "dead": 1, "expanded": 1,
        "seen": 2, "matched": 2, "pairs": 2, "folded": 2,
    }  # fmt: skip


def test_rows_of_a_generator_that_the_next_makes_none_of_are_counted() -> None:
    first = Generate(Scan("s"), "explode", of("{0}", "tags"), ("tag",))
    between = Filter(first, of("{0} <> 'c'", "tag"))
    last = Generate(between, "posexplode", of("split({0}, '')", "tag"), ("at", "letter"))
    node = Filter(last, of("{0} > 0", "at"))
    outputs = {name: of("{0}", name) for name in ("tag", "at", "letter")}
    found = ask(select(node, **outputs), s=[*TAGGED, {"tags": ["xy", "z"]}])
    assert rows(found, "tag", "at", "letter") == [("xy", 1, "y")]
    assert counts(found) == {
        "records": 5, "empty": 2, "expanded": 3, "ended": 1,
        "seen": 5, "skipped": 4, "matched": 1, "pairs": 1, "folded": 1,
    }  # fmt: skip


def test_an_expression_over_aggregates_does_not_see_the_rows_of_dead_records() -> None:
    exploded = Generate(Scan("s"), "posexplode", of("{0}", "tags"), ("at", "tag"))
    total = Aggregate(exploded, None, (of("1 / ({0} - 1)", "at"),), (Call("count"),))
    found = ask(select(total, n=of("1 / (2 - {0})", call_column(0))), s=TAGGED)
    assert rows(found, "n") == [(1.0,)]


def test_a_late_record_stands_in_the_set_once_and_its_pairs_are_counted() -> None:
    exploded = Generate(Scan("s"), "explode", of("{0}", "tags"), ("tag",))
    window = Window(10 * SECOND_US, "hopping", 5 * SECOND_US)
    node = Aggregate(exploded, window, (), (Call("count"),))
    times = [(7, ["a"]), (40, ["a"]), (8, ["a", "b"]), (41, [])]
    given = [{"ts": ts, "tags": tags} for ts, tags in times]
    found = ask(select(node, n=of("{0}", call_column(0))), s=given)
    assert found.late["v"] == [("s", 0, 2)]
    assert counts(found) == {
        "records": 4, "empty": 1, "expanded": 3,
        "seen": 4, "matched": 4, "pairs": 8, "folded": 4, "late": 4,
    }  # fmt: skip


def test_a_row_for_each_window_around_a_record_and_none_is_late() -> None:
    start, end, last = WINDOW_COLUMNS
    windows = AssignWindows(Scan("s"), Window(10 * SECOND_US, "hopping", 5 * SECOND_US))
    node = select(
        Filter(windows, of("{0} > 1", "i")),
        i=of("{0}", "i"),
        a=of("second({0})", start),
        b=of("second({0})", end),
        c=of("second({0})", last),
    )
    found = ask(node, s=[{"i": 2, "ts": 22}, {"i": 3, "ts": 7}, {"i": 1, "ts": 9}])
    assert rows(found, "i", "a", "b", "c") == [
        (2, 15, 25, 24), (2, 20, 30, 29), (3, 0, 10, 9), (3, 5, 15, 14),
    ]  # fmt: skip
    assert counts(found) == {
        "records": 3, "expanded": 3, "seen": 6, "skipped": 2, "matched": 4, "pairs": 4, "folded": 4,
    }  # fmt: skip
    # An aggregate may have its own windows above, and read these as any column.
    again = Aggregate(windows, Window(20 * SECOND_US), (), (Call("count"),))
    found = ask(select(again, a=of("second({0})", start), n=of("{0}", call_column(0))),
                s=[{"i": 2, "ts": 22}])  # fmt: skip
    assert rows(found, "a", "n") == [(20, 2)]


def test_inline_gives_a_column_for_each_field() -> None:
    pairs = of("array(named_struct('a', {0}, 'b', 'x'), null)", "i")
    node = Generate(Scan("s"), "inline", pairs, ("a", "b"))
    found = ask(select(node, a=of("{0}", "a"), b=of("{0}", "b")), s=[{"i": 1}])
    assert rows(found, "a", "b") == [(1, "x"), (None, None)]


def test_a_record_has_columns_of_its_own() -> None:
    names = [*COORDINATES]
    node = select(Scan("s"), **{f"x{name}": of("{0}", name) for name in names})
    log = {
        Partition("s", 0): [
            Record(
                7, 1_000_000, b"k", b'{"ts": "2026-03-01T00:00:00Z"}', (("h", b"v"), ("n", None))
            )
        ]
    }
    found = answer(Project((S,), (View("v", node),)), log)
    assert rows(found, *(f"x{name}" for name in names)) == [
        (
            "s", 0, 7, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), b"k",
            [{"name": "h", "value": b"v"}, {"name": "n", "value": None}],
        )
    ]  # fmt: skip


def test_what_stands_over_groups_is_a_filter_and_a_project() -> None:
    groups = Aggregate(
        Scan("s"),
        None,
        (of("{0} % 2", "i"),),
        (
            Call("count"),
            Call("sum", (of("10 / {0}", "i"),), condition=of("{0} > 0", "i")),
            Call("first", (of("{0}", "i"),)),
        ),
    )
    key, count, total, first = key_column(0), call_column(0), call_column(1), call_column(2)
    kept = Filter(groups, of("{0} > 0", count))
    outputs = {"odd": of("{0}", key), "n": of("{0} * 2", count), "t": of("{0}", total)}
    found = ask(select(kept, **outputs, f=of("{0}", first)), s=[*NUMBERS, {"i": 5}])
    assert sorted(rows(found, "odd", "n", "t", "f", "_events", "_closed"), key=str) == [
        (0, 4, 5.0, 0, 2, False),
        (1, 4, 12.0, 1, 2, False),
        (None, 2, None, None, 1, False),
    ]
    failing = select(Filter(groups, of("1 / ({0} - 1) > 0", count)), n=of("{0}", count))
    found = ask(failing, s=NUMBERS)
    assert (rows(found, "n"), len(found.errors["v"])) == ([(2,)], 2)


def test_a_function_that_duckdb_computes_otherwise_is_not_asked() -> None:
    with pytest.raises(NotImplementedError, match="the reference does not know FLOOR"):
        ask(select(Scan("s"), n=of("floor({0})", "i")), s=NUMBERS)


def test_keys_may_read_the_window() -> None:
    key = of("{0} + interval 1 hour", WINDOW_COLUMNS[0])
    node = Aggregate(
        Scan("s"), Window(10 * SECOND_US), (key,), (Call("max", (of("{0}", WATERMARK),)),)
    )
    found = ask(select(node, k=of("hour({0})", key_column(0)), w=of("{0}", call_column(0))), s=[{}])
    assert rows(found, "k", "w") == [(1, None)]


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["int32", "int64", "int8"], "int64"),
        (["int32", "double"], "double"),
        (["int32", "float"], "double"),
        (["float", "float"], "float"),
        (["decimal128(10, 2)", "decimal128(8, 4)"], "decimal128(12, 4)"),
        (["decimal128(5, 2)", "int32"], "decimal128(12, 2)"),
        (["decimal128(5, 2)", "int64"], "decimal128(22, 2)"),
        (["decimal128(5, 2)", "double"], "double"),
        (["string", "int32"], "int64"),
        (["string", "double"], "double"),
        (["string", "date32[day]"], "date32[day]"),
        (["date32[day]", "timestamp[us, tz=UTC]"], "timestamp[us, tz=UTC]"),
        (["null", "string"], "string"),
    ],
)
def test_the_branches_of_a_union_have_one_type_as_in_spark(types: list[str], expected: str) -> None:
    known = {str(each): each for each in KNOWN_TYPES}
    assert common_type([known[each] for each in types]) == known[expected]
    # The order of two branches does not matter.
    assert common_type([known[each] for each in reversed(types)]) == known[expected]


def test_columns_of_a_union_are_cast_to_their_common_type() -> None:
    left = select(Scan("s"), a=of("{0}", "i"), b=of("1"))
    right = select(Scan("t"), n=of("{0} / 4", "n"), c=of("{0}", "at"))
    node = select(Union((left, right)), a=of("{0}", "a"), b=of("{0} + 1", "b"))
    given = [{"n": 5, "at": "7"}, {"n": 6, "at": "x"}]
    found = ask(node, s=[{"i": 2**53 + 1}], t=given)
    # A BIGINT beside a DOUBLE is one; a text beside a number must be a number.
    assert rows(found, "a", "b") == [(float(2**53), 2), (1.25, 8)]
    assert found.dead["v"] == [("t", 0, 1)]


def test_over_groups_what_no_query_asks_for_never_fails() -> None:
    groups = Aggregate(Scan("s"), None, (of("{0}", "i"),), (Call("count"),))
    inner = select(groups, k=of("{0}", key_column(0)), bad=of("1 / {0}", key_column(0)),
                   n=of("{0}", call_column(0)))  # fmt: skip
    node = select(Filter(inner, of("{0} > 0", "n")), k=of("{0}", "k"), n=of("{0}", "n"))
    found = ask(node, s=[{"i": 0}, {"i": 1}, {"i": 0}])
    assert sorted(rows(found, "k", "n")) == [(0, 2), (1, 1)]
    asks = select(inner, k=of("{0}", "k"), bad=of("{0}", "bad"))
    assert sorted(rows(ask(asks, s=[{"i": 0}, {"i": 1}]), "k", "bad")) == [(1, 1.0)]
