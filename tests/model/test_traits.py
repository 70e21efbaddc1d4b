"""Traits: what holds for the rows of a node follows from its leaves; graphs are walked as drawn."""

import pytest

from headrace.model.definitions import Project, Sink, Stream, View
from headrace.model.graph import (
    aggregate_of,
    readers_of,
    relation_of,
    streams_of,
    walk,
    window_of,
)
from headrace.model.nodes import (
    COORDINATES,
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
from headrace.model.traits import Traits, traits_of
from headrace.model.validate import validate_view
from headrace.schema.types import Column, parse_type

TIME = Column("ts", parse_type("TIMESTAMP"), nullable=False)
TEXT = Column("a", parse_type("STRING"), nullable=False)
S = Stream("s", (TEXT, TIME), "s", event_time="ts", unique="a", unique_within_us=60)
T = Stream("t", (TIME, TEXT), "t", event_time="ts")
TIMELESS = Stream("u", (TEXT,), "u")
OF_S = ("a", "ts", *COORDINATES, WATERMARK)
STREAMS = {each.name: each for each in (S, T, TIMELESS)}


def select(node: Node, **columns: str) -> Select:
    """Return a selection; a column that is more than a name is an expression over `a`."""
    named = []
    for name, text in columns.items():
        scalar = Scalar.column(text) if text.isidentifier() else Scalar(text, ("a",))
        named.append(Named(name, scalar))
    return Select(node, tuple(named))


@pytest.mark.parametrize(
    ("node", "columns", "event_time"),
    [
        (Scan("s"), OF_S, "ts"),
        (Scan("u"), ("a", *COORDINATES), None),
        (Filter(Scan("s"), Scalar("true")), OF_S, "ts"),
        (select(Scan("s"), at="ts", b="upper({0})"), ("at", "b"), "at"),
        (select(Scan("s"), first="ts", second="ts"), ("first", "second"), "first"),
        (select(Scan("s"), ts="{0}::timestamp"), ("ts",), None),
        (select(select(Scan("s"), at="ts"), ts="at"), ("ts",), "ts"),
        (Generate(Scan("s"), "explode", Scalar.column("a"), ("e",)), (*OF_S, "e"), "ts"),
        (Union((select(Scan("s"), x="ts"), select(Scan("t"), y="ts"))), ("x",), "x"),
        (Union((select(Scan("s"), x="ts", y="a"), select(Scan("t"), x="a", y="ts"))),
            ("x", "y"), None),
        (Union((select(Scan("s"), x="ts"), select(Scan("u"), x="a"))), ("x",), None),
    ],
)  # fmt: skip
def test_the_event_time_is_kept_by_what_passes_it_on(
    node: Node, columns: tuple[str, ...], event_time: str | None
) -> None:
    found = traits_of(node, STREAMS)
    assert (found.columns, found.event_time) == (columns, event_time)
    assert found.append_only


def test_only_a_union_loses_the_order_of_offsets_before_the_fold() -> None:
    assert traits_of(relation_of(S), STREAMS) == Traits(OF_S, event_time="ts", bound="time")
    union = traits_of(Union((relation_of(S), Scan("t"))), STREAMS)
    assert (union.in_offset_order, union.bound) == (False, "time")


START, END, _ = WINDOW_COLUMNS
KEYS = (Scalar.column("a"),)


@pytest.mark.parametrize(
    ("window", "key", "bound"),
    [
        (None, (key_column(0),), "keys"),
        (Window(60), (START, key_column(0)), "time"),
        (Window(60, "cumulative", 20), (START, END, key_column(0)), "time"),
    ],
)
def test_groups_come_and_go_under_their_keys(
    window: Window | None, key: tuple[str, ...], bound: str
) -> None:
    node = Aggregate(relation_of(S), window, KEYS, (Call("count"),))
    found = traits_of(node, STREAMS)
    assert (found.append_only, found.key, found.bound) == (False, key, bound)
    assert found.columns[-2:] == (key_column(0), call_column(0))
    shown = {name.strip("_"): name for name in key}
    assert traits_of(select(node, **shown), STREAMS).key == tuple(shown)
    assert traits_of(select(node, n=call_column(0)), STREAMS).key == ()


@pytest.mark.parametrize(
    ("below", "window", "fault"),
    [
        (select(Scan("s"), at="ts"), Window(60, time=Scalar("{0} + 1", ("at",))), None),
        (Scan("u"), Window(60), "window() needs the event time of u, which has none; add to its"),
        (select(Scan("s"), b="a"), Window(60), "which the query below does not select"),
        (Scan("s"), Window(60, time=Scalar.column("a")), "windows are over the event time of s"),
    ],
)  # fmt: skip
def test_a_window_needs_the_event_time(below: Node, window: Window, fault: str | None) -> None:
    view = View("v", select(Aggregate(below, window, (), (Call("count"),)), n=call_column(0)))
    problems = [problem.message for problem in validate_view(view, STREAMS)]
    assert [fault in problem for problem in problems] == ([] if fault is None else [True])


def test_keys_over_edges_are_refused_where_a_record_does_not_know_them() -> None:
    for window in (Window(60, "hopping", 20), Window(60, "session")):
        key = Scalar("hour({0})", (START,))
        node = select(Aggregate(Scan("s"), window, (key,), ()), k=key_column(0))
        [problem] = validate_view(View("v", node), STREAMS)
        assert "have a start and an end, and no other expressions" in problem.message


def test_all_branches_of_a_union_have_as_many_columns() -> None:
    node = Union((select(Scan("s"), x="ts"), select(Scan("t"), y="ts", z="a")))
    [problem] = validate_view(View("v", node), STREAMS)
    assert problem.message == "the queries of UNION ALL have 1, 2 columns; select as many in each"


def test_nodes_are_walked_from_the_last_to_the_leaves() -> None:
    scan = Scan("t")
    inner = Aggregate(Filter(scan, Scalar("true")), Window(60), (), ())
    assert list(walk(inner)) == [inner, inner.input, scan]
    assert streams_of(Union((scan, relation_of(S), scan))) == ("t", "s")
    assert relation_of(T) == scan
    assert relation_of(S) == Deduplicate(Scan("s"), "a", 60)
    assert aggregate_of(select(inner, a="b")) is inner
    assert window_of(inner) == Window(60)
    assert aggregate_of(scan) is None
    assert aggregate_of(Union((inner, inner))) is None


def test_definitions_know_what_they_read() -> None:
    first, second = View("v", Scan("s")), View("w", Union((Scan("s"), Scan("t"))))
    project = Project((S, T), (first, second), (Sink("x", "w", "topic"),))
    assert readers_of(project, "s") == (first, second)
    assert project.views_over("t") == (second,)
