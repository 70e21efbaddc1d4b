"""The laws of promise 2: counters that lose, make up or owe a record are named, and refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import EngineError
from headrace.ledger.entries import Counted, Owner, PlannedTurn, StreamRange
from headrace.ledger.laws import STREAM_COUNTERS, VIEW_COUNTERS, broken_laws, check_laws
from headrace.log.base import Partition, Range

STREAM = Owner("stream", "clicks", "s1")
VIEW = Owner("view", "hits", "v1")
COUNTS = st.integers(min_value=0, max_value=2**62)


@given(COUNTS, COUNTS, COUNTS)
def test_a_stream_that_adds_up_breaks_no_law(accepted: int, dead: int, duplicate: int) -> None:
    counters = {"accepted": accepted, "dead": dead, "duplicate": duplicate}
    counters |= {"read": accepted + dead + duplicate, "unguarded": accepted}
    assert set(counters) == set(STREAM_COUNTERS)
    assert broken_laws(STREAM, counters) == []
    check_laws({Counted(STREAM, "clicks"): counters})


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.data())
def test_a_view_that_adds_up_breaks_no_law(
    skipped: int, dead: int, folded: int, late: int, data: st.DataObject
) -> None:
    counters = {"skipped": skipped, "dead": dead, "folded": folded, "late": late}
    counters["pairs"] = folded + late
    counters["corrected"] = data.draw(st.integers(0, folded))
    counters["matched"] = data.draw(st.integers(0, folded + late))
    counters["seen"] = skipped + dead + counters["matched"]
    assert set(counters) == set(VIEW_COUNTERS)
    assert broken_laws(VIEW, counters) == []


@given(st.sampled_from(VIEW_COUNTERS), st.sampled_from([-1, 1]))
def test_a_view_that_is_off_by_one_anywhere_breaks_a_law(counter: str, by: int) -> None:
    counters = {"seen": 9, "skipped": 2, "dead": 1, "matched": 6}
    counters |= {"pairs": 6, "folded": 4, "late": 2, "corrected": 4}
    counters[counter] += by
    # What is corrected is a part of what is folded, and no more is known of it.
    assert bool(broken_laws(VIEW, counters)) == ((counter, by) != ("corrected", -1))


def test_a_record_that_matched_has_a_window_at_least() -> None:
    counters = {"seen": 3, "skipped": 0, "dead": 0, "matched": 3}
    counters |= {"pairs": 2, "folded": 2, "late": 0, "corrected": 0}
    assert broken_laws(VIEW, counters) == ["view hits: matched 3 is more than pairs 2"]


def test_broken_laws_are_told_as_sentences_and_refused() -> None:
    stream = {"read": 5, "accepted": 3, "dead": 1, "duplicate": 0}
    view = {"seen": 3, "skipped": 0, "dead": 0, "matched": 3}
    view |= {"pairs": 3, "folded": 4, "late": -1, "corrected": 0}
    assert broken_laws(STREAM, stream) == [
        "stream clicks: read 5 is not accepted 3 + dead 1 + duplicate 0"
    ]
    assert broken_laws(VIEW, view) == ["view hits: late = -1 is negative"]
    with pytest.raises(
        EngineError, match="the turn does not add up and was not committed"
    ) as error:
        check_laws({Counted(STREAM, "clicks"): stream, Counted(VIEW, "clicks"): view})
    assert "stream clicks: read 5" in str(error.value)
    assert "view hits: late = -1" in str(error.value)


def test_a_planned_turn_counts_the_offsets_that_it_spans() -> None:
    ranges = (
        StreamRange("a", Range(Partition("t", 0), 5, 8)),
        StreamRange("b", Range(Partition("t", 1), 0, 1)),
    )
    assert PlannedTurn("main", 1, 1, ranges).records == 4
