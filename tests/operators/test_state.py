"""Operator state: runs on disk, found by key, merged in tiers, never lost and never left behind.

Method: random entries are added in random pieces; a plain dictionary says what is to be found.
Files are damaged, taken away, left behind by crashes.
"""

import errno
import hashlib
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from soaking import times

from headrace import faults
from headrace.errors import DiskFull, StateDamaged, StoreError
from headrace.operators.state import (
    SHARDS,
    Entries,
    Hasher,
    Keys,
    Run,
    Shards,
    State,
    StateFolder,
    join_runs,
    tiers,
)
from headrace.operators.state.entries import look_up, merge, order_keys
from headrace.time.clocks import NEVER

ALWAYS = NEVER  # nothing has expired


def entries(found: dict[tuple[int, int], int]) -> Entries:
    keys = sorted(found)
    return Entries(
        np.array([key[0] for key in keys], dtype=np.uint64),
        np.array([key[1] for key in keys], dtype=np.uint64),
        np.array([found[key] for key in keys], dtype=np.int64),
    )


def random_entries(rows: int, seed: int, clock_us: int = 0) -> Entries:
    random = np.random.default_rng(seed)
    high = np.sort(random.integers(0, 2**64, rows, dtype=np.uint64))
    low = random.integers(0, 2**64, rows, dtype=np.uint64)
    return Entries(high, low, np.full(rows, clock_us, dtype=np.int64))


def keys_of(found: Entries) -> Keys:
    return Keys(found.high, found.low)


def depth(runs: tuple[Run, ...]) -> int:
    return max(
        sum(run.shards.first <= shard < run.shards.end for run in runs) for shard in range(SHARDS)
    )


# Hashes.


def test_a_key_is_the_beginning_of_the_sha256_of_partition_and_id() -> None:
    ids = ["a", "", "ü" * 20, "x" * 1000]
    found = Hasher().keys(pa.array([0, 7, 12, 0], pa.int32()), pa.array(ids))
    for index, (partition, id) in enumerate(zip([0, 7, 12, 0], ids, strict=True)):
        digest = hashlib.sha256(f"{partition}:{id}".encode()).digest()
        assert int(found.high[index]) == int.from_bytes(digest[:8], "big")
        assert int(found.low[index]) == int.from_bytes(digest[8:16], "big")


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.string(), ["a", "b", ":", ""]),
        (pa.binary(), [b"a", b"\xff\x00", b"\xff", b""]),
        (pa.int8(), [1, -1, 0, 127]),
        (pa.int64(), [1, 11, -1, 2**62]),
        (pa.decimal128(38, 2), [Decimal("1.50"), Decimal("-1.50"), Decimal("15"), Decimal("0")]),
        (pa.date32(), [date(2026, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)]),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2026, 1, 1, 0, 0, 0, micros, tzinfo=UTC) for micros in (0, 1, 10, 999_999)],
        ),
        (pa.bool_(), [True, False]),
    ],
    ids=str,
)
def test_ids_of_every_type_are_told_apart_and_found_again(
    type: pa.DataType, values: list[object]
) -> None:
    hasher = Hasher()
    partitions = pa.array([1] * len(values), pa.int32())
    all_at_once = hasher.keys(partitions, pa.array(values, type))
    assert len(set(all_at_once.high.tolist())) == len(values)
    alone = [hasher.keys(partitions[:1], pa.array([value], type)).high[0] for value in values]
    assert alone == all_at_once.high.tolist()
    sliced = hasher.keys(partitions[1:], pa.array(values, type).slice(1))
    assert sliced.low.tolist() == all_at_once.low[1:].tolist()
    other = hasher.keys(pa.array([2] * len(values), pa.int32()), pa.array(values, type))
    assert not set(other.high.tolist()) & set(all_at_once.high.tolist())


# Columns.


def test_equal_keys_keep_their_order_and_half_equal_keys_are_told_apart() -> None:
    high = np.array([5, 1, 5, 5, 1, 5], dtype=np.uint64)
    low = np.array([9, 3, 2, 9, 3, 2], dtype=np.uint64)
    assert order_keys(Keys(high, low)).tolist() == [1, 4, 2, 5, 0, 3]


def test_keys_that_share_their_first_64_bits_are_found_each() -> None:
    top = 2**64 - 1
    stored = {(7, low): low * 10 for low in range(5)} | {(top, 3): 1, (top, 9): 2}
    asked = Keys(
        np.array([7, 7, 7, top, top, top], dtype=np.uint64),
        np.array([0, 4, 5, 3, 9, 10], dtype=np.uint64),
    )
    assert look_up(entries(stored), asked).tolist() == [0, 40, NEVER, 1, 2, NEVER]


def test_of_a_key_the_latest_clock_stays_and_what_has_expired_goes() -> None:
    parts = [entries({(1, 1): 5, (2, 2): 50}), entries({(1, 1): 60, (3, 3): 7, (4, 4): 8})]
    found = merge(parts, drop_before_us=8)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == [
        (1, 1, 60),
        (2, 2, 50),
        (4, 4, 8),
    ]
    assert merge(parts, drop_before_us=100).rows == 0


# State.

small_words = st.sampled_from([0, 1, 2**53, 2**54, 2**54 + 1, 2**63, 2**64 - 1])
pieces = st.dictionaries(st.tuples(small_words, small_words), st.integers(0, 50), max_size=12)


@pytest.mark.soak
@settings(
    deadline=None,
    max_examples=times(50),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    turns=st.lists(
        st.tuples(
            pieces,
            st.integers(0, 30),  # what has expired
            st.sampled_from([None, 0, 3, 1000]),  # rows to merge
            st.sampled_from([1, 2, 8]),  # tasks, each with its shards
        ),
        max_size=14,
    ),
    block_rows=st.sampled_from([2, 5, 1000]),
)
def test_whatever_is_merged_when_the_same_is_found(
    tmp_path_factory: pytest.TempPathFactory,
    turns: list[tuple[dict[tuple[int, int], int], int, int | None, int]],
    block_rows: int,
) -> None:
    folder = StateFolder(tmp_path_factory.mktemp("state"))
    words = [0, 1, 2, 2**53, 2**54, 2**54 + 1, 2**63, 2**64 - 1]
    asked = entries({(high, low): 0 for high in words for low in words})
    runs: tuple[Run, ...] = ()
    plain: dict[tuple[int, int], int] = {}
    expired = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiers, "BLOCK_ROWS", block_rows)
        for added, expires, merge_rows, tasks in turns:
            expired = max(expired, expires)
            made: list[Run] = []
            for task in range(tasks):
                shards = Shards(task * SHARDS // tasks, (task + 1) * SHARDS // tasks)
                here = {
                    key: clock
                    for key, clock in added.items()
                    if shards.first <= key[0] >> 54 < shards.end
                }
                state = State(folder, runs, shards)
                made += state.add(entries(here), drop_before_us=expired, merge_rows=merge_rows)
            runs = join_runs(made)
            for key, clock in added.items():
                plain[key] = max(clock, plain.get(key, clock))
            found = State(folder, runs).look_up(keys_of(asked)).tolist()
            for high, low, clock in zip(asked.high, asked.low, found, strict=True):
                expected = plain.get((int(high), int(low)), NEVER)
                # What has expired may be there or not.
                assert clock == expected or max(clock, expected) < expired
    named = {run.file for run in runs}
    folder.sweep(named)
    assert {path.name for path in folder.path.iterdir()} == named


def test_many_small_turns_leave_few_runs_and_few_files(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    runs: tuple[Run, ...] = ()
    most = 0
    for turn in range(200):
        before = {run.file for run in runs}
        runs = State(folder, runs).add(
            random_entries(50, turn), drop_before_us=ALWAYS, merge_rows=100_000
        )
        folder.remove(before - {run.file for run in runs})
        most = max(most, depth(runs))
    assert most <= tiers.MAX_RUNS
    assert sum(run.rows for run in runs) == 200 * 50
    assert len(list(folder.path.iterdir())) == len({run.file for run in runs}) <= tiers.MAX_RUNS


def test_a_large_merge_is_spread_over_turns_and_cut_into_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "BLOCK_ROWS", 1000)
    folder = StateFolder(tmp_path / "state")
    runs: tuple[Run, ...] = ()
    most = 0
    for turn in range(60):
        runs = State(folder, runs).add(
            random_entries(500, turn), drop_before_us=ALWAYS, merge_rows=5_000
        )
        most = max(most, depth(runs))
    assert sum(run.rows for run in runs) == 60 * 500
    assert most <= tiers.MAX_RUNS + 3
    assert max(run.rows for run in runs) <= 1500  # blocks are sized by an estimate
    found = State(folder, runs).look_up(keys_of(random_entries(500, 17)))
    assert (found == 0).all()


def test_a_merge_that_fails_on_its_second_file_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "BLOCK_ROWS", 1000)
    folder = StateFolder(tmp_path)
    runs = State(folder, ()).add(random_entries(900, 1), drop_before_us=ALWAYS)
    before = list(tmp_path.iterdir())

    def full() -> None:
        raise OSError(errno.ENOSPC, "no space left")

    for _ in range(2):
        faults.arm("state_before_rename", lambda: faults.arm("state_before_rename", full))
        with pytest.raises(DiskFull):
            State(folder, runs).add(random_entries(900, 2), drop_before_us=ALWAYS)
        assert list(tmp_path.iterdir()) == before
    assert len(State(folder, runs).add(random_entries(900, 2), drop_before_us=ALWAYS)) > 1


def test_a_run_of_which_all_has_expired_is_dropped_unread(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    runs = State(folder, ()).add(random_entries(10, 1, clock_us=5), drop_before_us=ALWAYS)
    (tmp_path / runs[0].file).write_bytes(b"rubbish")
    fresh = StateFolder(tmp_path)
    assert State(fresh, runs).add(Entries.none(), drop_before_us=6) == ()
    with pytest.raises(StateDamaged):
        State(fresh, runs).add(Entries.none(), drop_before_us=5)


def test_a_state_folder_travels_to_a_task_without_its_open_files(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    run = folder.write(random_entries(10, 1))
    folder.read(run)
    other = pickle.loads(pickle.dumps(folder))
    assert other.read(run).high.tolist() == folder.read(run).high.tolist()


# Files.

GOLDEN = Path(__file__).parent / "golden" / "version-1.run"
GOLDEN_ENTRIES = {(2**54, 1): -1, (2**54, 2): 1_700_000_000_000_000, (2**55 - 1, 0): 7}


def test_a_file_of_version_1_is_still_read(tmp_path: Path) -> None:
    (tmp_path / GOLDEN.name).write_bytes(GOLDEN.read_bytes())
    run = Run(GOLDEN.name, Shards(1, 2), 3, 1_700_000_000_000_000, GOLDEN.stat().st_size)
    found = StateFolder(tmp_path).read(run)
    assert list(map(list, found)) == list(map(list, entries(GOLDEN_ENTRIES)))


def test_every_byte_that_counts_is_guarded(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    run = folder.write(random_entries(20, 1))
    sound = (tmp_path / run.file).read_bytes()
    expected = [column.tolist() for column in folder.read(run)]
    harmless = 0
    for at in range(len(sound)):
        (tmp_path / run.file).write_bytes(sound[:at] + bytes([sound[at] ^ 0x41]) + sound[at + 1 :])
        try:
            found = StateFolder(tmp_path).read(run)
        except StateDamaged:
            continue
        assert [column.tolist() for column in found] == expected
        harmless += 1
    # Padding, and what Arrow keeps twice.
    assert harmless < len(sound) * 0.7


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(b""), "cannot be read"),
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "cannot be read"),
        (
            lambda path: path.write_bytes(
                path.read_bytes().replace(b'"version": 1', b'"version": 9')
            ),
            "is of version 9, this release reads 1",
        ),
    ],
)
def test_a_file_that_is_gone_or_damaged_is_named_with_what_to_do(
    tmp_path: Path, harm: Callable[[Path], object], message: str
) -> None:
    run = StateFolder(tmp_path).write(random_entries(100, 1))
    harm(tmp_path / run.file)
    with pytest.raises(StateDamaged, match=message) as error:
        StateFolder(tmp_path).read(run)
    assert run.file in str(error.value)
    assert "built anew from the log" in str(error.value)


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    run = StateFolder(tmp_path).write(random_entries(100, 1))
    path = tmp_path / run.file
    path.rename(tmp_path / "away")
    path.symlink_to(path)  # what even root may not follow
    with pytest.raises(StoreError, match=r"cannot be opened.*nothing is lost") as error:
        StateFolder(tmp_path).read(run)
    assert not isinstance(error.value, StateDamaged)
    assert str(path) in str(error.value)
    assert "move" not in str(error.value)
    path.unlink()
    (tmp_path / "away").rename(path)
    assert StateFolder(tmp_path).read(run).rows == 100


def test_a_file_of_another_store_is_refused(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    run = folder.write(random_entries(100, 1))
    with pytest.raises(StateDamaged, match="it is of another store"):
        folder.read(replace(run, rows=99))


def test_verify_reads_again_what_is_open(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    run = folder.write(random_entries(100, 1))
    folder.verify([run])
    sound = (tmp_path / run.file).read_bytes()
    (tmp_path / run.file).unlink()  # the open file has its own bytes
    (tmp_path / run.file).write_bytes(sound[:-1500] + bytes([sound[-1500] ^ 1]) + sound[-1499:])
    folder.read(run)
    with pytest.raises(StateDamaged, match="checksum"):
        folder.verify([run])


def test_a_crash_while_writing_leaves_what_the_next_start_removes(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    kept = folder.write(random_entries(5, 0))
    for _ in range(3):
        faults.arm("state_before_rename")
        with pytest.raises(faults.Crash):
            folder.write(random_entries(5, 1))
        folder.write(random_entries(5, 2))  # of a turn that died before its commit
    assert len(list(folder.path.iterdir())) == 7
    assert len(StateFolder(folder.path).sweep({kept.file})) == 6
    assert [path.name for path in folder.path.iterdir()] == [kept.file]
    assert StateFolder(tmp_path / "never made").sweep(set()) == []


@pytest.mark.parametrize(("code", "kind"), [(errno.ENOSPC, DiskFull), (errno.EACCES, StoreError)])
def test_a_disk_that_is_full_or_refuses_is_told_and_leaves_no_file(
    tmp_path: Path, code: int, kind: type[Exception]
) -> None:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    faults.arm("state_before_rename", fail)
    with pytest.raises(kind, match="operator state"):
        StateFolder(tmp_path).write(random_entries(5, 1))
    assert list(tmp_path.iterdir()) == []
