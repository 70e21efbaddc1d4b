"""The reference node by node, against answers worked out by hand.

Method: views are built from nodes, so that what SQL cannot say yet (unions, generators, queries
within queries) is defined before it is planned.
"""

import json
from typing import Any

import pytest

from headrace.log.base import Partition
from headrace.model.definitions import Project, Stream, View
from headrace.model.nodes import (
    WATERMARK,
    WINDOW_COLUMNS,
    Aggregate,
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
from headrace.schema.types import Column, parse_type

SECOND_US = 1_000_000


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
    assert found.dead["v"] == [(1, "t", 0, 0)]
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
    assert found.late["v"] == [(0, "s", 0, 2)]
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


def test_the_rows_of_a_generator_have_coordinates_of_their_own() -> None:
    exploded = Generate(Scan("s"), "posexplode", of("{0}", "tags"), ("at", "i"))
    kept = Filter(exploded, of("{0} <> 'a'", "i"))
    # The generator's column hides the stream's of the same name.
    found = ask(select(kept, at=of("{0}", "at"), share=of("1 / ({0} - 1)", "at")), s=TAGGED)
    assert rows(found, "at", "share") == [(0, -1.0)]
    assert found.dead["v"] == [("s", 0, 0, 1)]
    assert counts(found) == {
        "seen": 3, "skipped": 1, "dead": 1, "matched": 1, "pairs": 1, "folded": 1,
    }  # fmt: skip


def test_what_fails_before_a_generator_is_dead_and_of_an_earlier_stage() -> None:
    below = Filter(Scan("s"), of("1 / {0} > 0", "i"))
    node = Generate(below, "explode", of("{0}", "m"), ("k", "v"))
    found = ask(
        select(node, k=of("{0}", "k"), v=of("{0}", "v")),
        s=[{"i": 0, "m": {"x": 1}}, {"i": 1, "m": {"y": 2, "z": 3}}],
    )
    assert rows(found, "k", "v") == [("y", 2), ("z", 3)]
    assert found.dead["v"] == [("s", 0, 0)]
    assert counts(found) == {"seen": 2, "matched": 2, "pairs": 2, "folded": 2}


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
    with pytest.raises(ValueError, match="an expression over aggregates fails"):
        ask(failing, s=NUMBERS)


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
