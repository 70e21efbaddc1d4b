"""Markers are read as they were written; whatever else stands in their topic is void.

Method: books written by the code are read by it and by the reference, which has a reader of its
own; every single change of a value makes it void.
"""

import hashlib
import json
import math
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log import Partition
from headrace.model.definitions import Adaptive, Stream
from headrace.reference.clocks import Marker, PartitionClock, read_markers
from headrace.time.clocks import Clock, Mark
from headrace.time.markers import MarkedPartition, MarkerBook, Marks, chain

IDLE = Marks(7, "s", "t", "idle", marks=((0, 10, 1_000), (1, 20, 2_000)))
LATER = Marks(7, "s", "t", "idle", marks=((0, 10, 5_000),))
LEARNT = Marks(7, "s", "t", "learnt", 250, ((0, 10, None), (1, 30, None)))
P0, P1 = MarkedPartition("s", "t", 0), MarkedPartition("s", "t", 1)
STREAM = Stream("s", (), "t", event_time="ts", delay_us=900, adaptive=Adaptive("0.9", 900))
EVERYTHING = 10**9


def book(*values: bytes | None) -> MarkerBook:
    made = MarkerBook()
    for number, value in enumerate(values):
        made.add(number, value)
    return made


def all_of(made: MarkerBook, place: MarkedPartition) -> tuple[Mark, ...]:
    return made.fresh(STREAM, place.partition, EVERYTHING, since=0, until=EVERYTHING)


def test_marks_are_kept_by_partition_in_the_order_they_were_written() -> None:
    values = list(chain([Marks(7), IDLE, LEARNT, LATER], ""))
    made = book(*values)
    assert all_of(made, P0) == (
        Mark(1, 10, 1_000),
        Mark(2, 10, None, 250),
        Mark(3, 10, 5_000),
    )
    assert all_of(made, P1) == (Mark(1, 20, 2_000), Mark(2, 30, None, 250))
    assert (made.epoch, made.end_offset, made.void) == (7, 4, 0)
    assert read_markers(values) == [
        Marker("s", "t", 0, 10, 1_000, None, None),
        Marker("s", "t", 1, 20, 2_000, None, None),
        Marker("s", "t", 0, 10, None, 250, None),
        Marker("s", "t", 1, 30, None, 250, None),
        Marker("s", "t", 0, 10, 5_000, None, None),
    ]


def test_no_marker_hides_one_that_stands_before_it_at_the_same_place() -> None:
    made = book(*chain([Marks(7), LATER, IDLE], ""))
    assert made.fresh(STREAM, 0, 10, since=0, until=2) == (Mark(1, 10, 5_000),)
    assert all_of(made, P0) == (Mark(1, 10, 5_000), Mark(2, 10, 1_000))


@given(
    st.lists(st.integers(0, 6), max_size=12),
    st.integers(0, 7),
    st.integers(0, 7),
    st.integers(0, 14),
    st.integers(0, 14),
    st.integers(0, 7),
)
def test_what_a_reader_gets_is_what_the_definition_says(
    offsets: list[int], low: int, high: int, since: int, until: int, floor: int
) -> None:
    written = [Marks(7, "s", "t", "idle", marks=((0, at, 5),)) for at in offsets]
    values = list(chain([Marks(7), *written], ""))
    made, forgetful = book(*values), MarkerBook()
    for number, value in enumerate(values):
        forgetful.add(number, value)
        forgetful.forget({P0: min(floor, low)})
    everything = all_of(made, P0)
    # None goes back, whatever it says of itself, and also where those before are forgotten.
    assert [mark.offset for mark in everything] == list(accumulate(offsets, max))
    assert made.fresh(STREAM, 0, high, since=since, until=until) == tuple(
        mark for mark in everything if mark.offset <= high and since <= mark.number < until
    )
    for each in (made, forgetful):
        assert each.ahead(STREAM, 0, low, high, until=until) == tuple(
            mark for mark in everything if low < mark.offset <= high and mark.number < until
        )


def test_a_reader_gets_what_acts_where_it_stands_and_what_acts_ahead() -> None:
    made = book(*chain([Marks(7), IDLE, LEARNT], ""))
    assert made.fresh(STREAM, 1, 19, since=0, until=3) == ()
    assert made.fresh(STREAM, 1, 20, since=0, until=3) == (Mark(1, 20, 2_000),)
    assert made.fresh(STREAM, 1, 20, since=2, until=3) == ()
    assert made.ahead(STREAM, 1, 20, 30, until=3) == (Mark(2, 30, None, 250),)
    assert made.ahead(STREAM, 1, 20, 30, until=2) == ()
    assert made.ahead(STREAM, 1, 20, 29, until=3) == ()
    made.forget({P1: 30, P0: 0})
    assert all_of(made, P1) == (Mark(2, 30, None, 250),)
    assert len(all_of(made, P0)) == 2
    made.forget({P1: 30})
    assert all_of(made, P0) == ()


def test_an_older_engine_and_one_that_begins_again_are_void() -> None:
    first = list(chain([Marks(7), IDLE], ""))
    made = book(*first)
    after = list(chain([Marks(8)], made.check))
    zombie = list(chain([LATER], made.check))  # it did not see that another has begun
    made = book(*first, *after)
    informed = list(chain([LATER, Marks(7), Marks(8)], made.check))  # it did, and writes on
    values = [*first, *after, *zombie, *informed]
    made = book(*values)
    assert made.void == 4
    assert made.epoch == 8
    assert len(made) == 2
    assert len(read_markers(values)) == 2


def _edits() -> list[bytes | None]:
    value = list(chain([Marks(7), IDLE], ""))[1]
    honest = json.loads(value)
    changed = [
        {**honest, "check": "0" * 16},
        {**honest, "epoch": 6},
        {**honest, "stream": "other"},
        {**honest, "marks": [[0, 10, 999]]},
        {**honest, "more": 1},
        {name: each for name, each in honest.items() if name != "check"},
        {**honest, "v": 2},
    ]
    texts = [json.dumps(each).encode() for each in changed]
    return [*texts, None, b"", b"{", b"[]", b"\xff", b"null", b'"x"', b"[" * 100_000]


@pytest.mark.parametrize("forged", _edits())
def test_what_the_engine_did_not_write_is_void_and_counted(forged: bytes | None) -> None:
    begin, *rest = chain([Marks(7), IDLE, LATER], "")
    made = book(begin, forged, *rest)
    assert made.void == 1
    assert all_of(made, P0) == (Mark(2, 10, 1_000), Mark(3, 10, 5_000))
    assert read_markers([begin, forged, *rest]) == read_markers([begin, *rest])


@pytest.mark.parametrize(
    "forged",
    [
        {"marks": [[0, 10, None]]},
        {"marks": [[0, -1, 5]]},
        {"marks": [[0, 1]]},
        {"marks": [[True, 1, 5]]},
        {"marks": [[0, 1, 2**63]]},
        {"marks": [[0, 1, 1.5]]},
        {"marks": [[0, 1, 5, 6]]},
        {"marks": {"0": 1}},
        {"delay_us": -1, "marks": [[0, 10, None]]},
        {"delay_us": None},
        {"stream": None},
        {"stream": ["s"]},
        {"topic": 1},
        {"why": {}},
        {"event_time": None},
        {"event_time": "ts"},
        {"event_time": ["ts"]},
        {"event_time": [None, None]},
        {"event_time": ["ts", 0]},
        {"epoch": "7"},
        {"v": 2},
        {"v": True},
        {"more": 1},
    ],
    ids=str,
)
def test_what_has_not_the_form_is_void_though_it_knows_the_check(forged: dict[str, object]) -> None:
    begin, honest = chain([Marks(7), IDLE], "")
    body = {"v": 1, "epoch": 7, "stream": "s", "topic": "t", "why": "idle", "marks": [[0, 10, 5]]}
    assert read_markers([begin, signed(body, begin)])
    value = signed(body | forged, begin)
    made = book(begin, value, honest)
    assert made.void == 1
    assert len(made) == 2
    assert read_markers([begin, value, honest]) == read_markers([begin, honest])


def signed(body: dict[str, object], before: bytes) -> bytes:
    """Return a value with the right check after another one."""
    text = json.loads(before)["check"] + json.dumps(body, sort_keys=True, separators=(",", ":"))
    check = hashlib.sha256(text.encode()).hexdigest()[:16]
    return json.dumps(body | {"check": check}).encode()


# What engines wrote under one definition after the other: the event time was ts, later other.
HISTORY = [
    Marks(7),
    Marks(7, "s", "t", "idle", marks=((0, 1, 1_000),)),  # from before it was named
    Marks(7, "s", "t", "learnt", 100, ((0, 2, None),), ("ts", None)),
    Marks(7, "s", "t", "idle", marks=((0, 3, 2_000),), event_time=("ts", None)),
    Marks(7, "s", "t", "new", 800, ((0, 4, 7_000),), ("other", None)),
    Marks(7, "s", "t", "idle", marks=((0, 5, 9_000),), event_time=("ts", "millis")),
]


@pytest.mark.parametrize(
    ("changed", "time_us", "watermark_us", "delay_us"),
    [
        ({}, 2_000, 1_900, 100),
        ({"adaptive": Adaptive("0.9", 60), "delay_us": 60}, 2_000, 1_940, 60),
        ({"adaptive": None, "delay_us": 500}, 2_000, 1_500, 500),
        ({"event_time": "other"}, 7_000, 6_200, 800),
        ({"timestamp_format": "millis"}, 9_000, 8_100, 900),
        ({"event_time": "third"}, 1_000, 100, 900),
    ],
)
def test_what_was_learnt_under_another_definition_does_not_act(
    changed: dict[str, Any], time_us: int, watermark_us: int, delay_us: int
) -> None:
    stream = replace(STREAM, **changed)
    values = list(chain(HISTORY, ""))
    marks = book(*values).fresh(stream, 0, EVERYTHING, since=0, until=EVERYTHING)
    clock = Clock(delay_us=stream.delay_us).marked(marks)
    assert clock[:3] == (time_us, watermark_us, delay_us)
    reference = PartitionClock(stream, Partition("t", 0), read_markers(values))
    reference.reach(EVERYTHING)
    assert (reference.time, reference.watermark) == (time_us, watermark_us)


def test_a_stream_without_event_time_has_no_clock_that_markers_could_move() -> None:
    stream = replace(STREAM, event_time=None, adaptive=None)
    values = list(chain(HISTORY, ""))
    assert book(*values).ahead(stream, 0, 0, EVERYTHING, until=EVERYTHING) == ()
    reference = PartitionClock(stream, Partition("t", 0), read_markers(values))
    reference.reach(EVERYTHING)
    assert reference.time == -math.inf


def test_a_marker_that_goes_back_acts_no_earlier_than_the_one_before() -> None:
    back = Marks(7, "s", "t", "idle", marks=((1, 3, 9_000),))
    values = list(chain([Marks(7), IDLE, back], ""))
    assert all_of(book(*values), P1) == (Mark(1, 20, 2_000), Mark(2, 20, 9_000))
    assert [marker.offset for marker in read_markers(values) if marker.partition == 1] == [20, 20]
