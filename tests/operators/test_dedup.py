"""Dedup: the vectorised step says the same as a plain loop, whatever the cuts and merges.

Method: random records of few ids, cut into batches at random, with the state merged in between,
against the reference's memory of one partition.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.operators.dedup import Batch, deduplicate
from headrace.operators.state import Hasher, Keys, Run, State, StateFolder
from headrace.reference.duplicates import Memory
from headrace.time.clocks import NEVER


class Empty:
    """A state that remembers nothing."""

    def look_up(self, keys: Keys) -> np.ndarray:
        return np.full(len(keys.high), NEVER, dtype=np.int64)


def stamp(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the clocks before and after the records of one partition."""
    clocks = np.maximum.accumulate(np.append(NEVER, times))
    return clocks[:-1], clocks[1:]


def plain(ids: list[int], clocks: list[int], after: list[int], within_us: int) -> list[bool]:
    memory = Memory(within_us)
    return [
        memory.is_duplicate(id, clock=clock, after=then)
        for id, clock, then in zip(ids, clocks, after, strict=True)
    ]


def batch_of(ids: list[int], clocks: list[int], after: list[int]) -> Batch:
    # Ids that share the first half of their hash are told apart by the second.
    high = np.array([id // 2 for id in ids], dtype=np.uint64) << np.uint64(55)
    low = np.array([id % 2 for id in ids], dtype=np.uint64)
    return Batch(high, low, np.array(clocks, np.int64), np.array(after, np.int64))


records = st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 30)), max_size=60)


@settings(
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    drawn=records,
    within_us=st.integers(1, 12),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    merge_rows=st.sampled_from([None, 0, 4]),
)
def test_every_cut_into_batches_gives_what_a_plain_loop_gives(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[int, int]],
    within_us: int,
    cuts: list[int],
    merge_rows: int | None,
) -> None:
    ids = [id for id, _ in drawn]
    times = np.array([time for _, time in drawn], dtype=np.int64)
    clocks, after = (found.tolist() for found in stamp(times))
    folder = StateFolder(tmp_path_factory.mktemp("state"))
    runs: tuple[Run, ...] = ()
    found: list[bool] = []
    bounds = sorted({0, len(ids), *(cut for cut in cuts if cut < len(ids))})
    for start, end in pairwise(bounds):
        part = slice(start, end)
        state = State(folder, runs)
        result = deduplicate(
            state, batch_of(ids[part], clocks[part], after[part]), within_us=within_us
        )
        found += result.duplicate.tolist()
        horizon_us = after[end - 1] - within_us
        runs = state.add(result.entries, drop_before_us=horizon_us, merge_rows=merge_rows)
    assert found == plain(ids, clocks, after, within_us)


def test_partitions_have_clocks_and_ids_of_their_own() -> None:
    # Two partitions, one record of the same id each, the second with a clock long before.
    keys = Hasher().keys(pa.array([0, 1, 0, 1], pa.int32()), pa.array(["a"] * 4))
    batch = Batch(*keys, np.array([NEVER, NEVER, 900, 5]), np.array([900, 5, 950, 80]))
    found = deduplicate(Empty(), batch, within_us=10)
    assert found.duplicate.tolist() == [False, False, True, True]
    assert sorted(found.entries.clock_us.tolist()) == [5, 900]


@pytest.mark.parametrize("within_us", [1, 10, 10**15])
def test_one_id_that_stands_there_50_000_times_is_followed_too(within_us: int) -> None:
    times = np.arange(50_000, dtype=np.int64) * 3
    clocks, after = stamp(times)
    same = np.zeros(len(times), dtype=np.uint64)
    found = deduplicate(Empty(), Batch(same, same, clocks, after), within_us=within_us)
    expected = plain([0] * len(times), clocks.tolist(), after.tolist(), within_us)
    assert found.duplicate.tolist() == expected
    assert found.entries.rows == 1


def test_the_horizon_is_inclusive_and_duplicates_do_not_extend_it() -> None:
    # After the first record the clock is 100; with 10 to go, a clock of 110 is within, 111 not.
    clocks, after = [NEVER, 100, 105, 110, 111, 111], [100, 105, 110, 111, 111, 120]
    found = deduplicate(Empty(), batch_of([1] * 6, clocks, after), within_us=10)
    assert found.duplicate.tolist() == [False, True, True, True, False, True]
    assert found.entries.clock_us.tolist() == [111]


def test_times_that_span_all_years_do_not_overflow() -> None:
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    clocks, after = [NEVER, first, last], [first, last, last]
    found = deduplicate(
        Empty(), batch_of([1] * 3, clocks, after), within_us=36_500 * 86_400 * 10**6
    )
    assert found.duplicate.tolist() == [False, True, False]


def test_no_records_are_no_duplicates() -> None:
    found = deduplicate(Empty(), batch_of([], [], []), within_us=10)
    assert found.duplicate.tolist() == []
    assert found.entries.rows == 0
