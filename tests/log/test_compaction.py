"""Compaction of the embedded log removes what it may, in time, and nothing else.

Method: random histories against a model of plain dictionaries; then its rules one by one.
"""

import os
import pickle
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from soaking import seeded, times

from headrace.errors import UsageError
from headrace.log import (
    EmbeddedLog,
    Extent,
    Range,
    TopicSettings,
    records,
)
from headrace.log.embedded.listing import list_files, list_replaced
from headrace.log.embedded.upkeep import compaction, housekeeping, rewriting
from headrace.testing.log.suite import rows, values
from log.compacted import (
    COMPACTED,
    PARTITION_0,
    TOMBSTONE_MS,
    Clock,
    make_log,
    names,
    pairs,
    put,
    sound,
)

pytestmark = pytest.mark.usefixtures("only_when_asked")


class Model:
    """What was appended, and what must and what may be left of it."""

    def __init__(self, log: EmbeddedLog, clock: Clock) -> None:
        self.log, self.clock = log, clock
        self.appended: dict[int, Any] = {}
        self.newest: dict[bytes, int] = {}
        self.first_pass_ms: dict[int, int] = {}

    def append(self, chance: random.Random) -> None:
        count = chance.choice([1, 1, 2, 5, 30])
        keys = [b"%d" % chance.randrange(chance.choice([3, 40])) for _ in range(count)]
        texts = [None if chance.random() < 0.3 else os.urandom(20) for _ in keys]
        table = records(texts, keys=keys, headers=[{"h": key} for key in keys])
        (written,) = self.log.append("t", table, partition=0).ranges
        for row in rows(self.log, PARTITION_0, written.start, written.end):
            self.appended[row["offset"]] = row
            self.newest[row["key"]] = row["offset"]

    def note_pass(self) -> None:
        for offset in self.newest.values():
            if self.appended[offset]["value"] is None:
                self.first_pass_ms.setdefault(offset, self.clock.ms)

    def check(self, log: EmbeddedLog, *, fully: bool) -> None:
        first, end = log.extents("t")[PARTITION_0]
        assert end == len(self.appended)
        left = rows(log, PARTITION_0)
        offsets = [row["offset"] for row in left]
        assert offsets == sorted(offsets)
        assert left == [self.appended[offset] for offset in offsets]
        must = {
            offset
            for offset in self.newest.values()
            if offset >= first
            and (
                self.appended[offset]["value"] is not None
                or self.first_pass_ms.get(offset, self.clock.ms) + TOMBSTONE_MS > self.clock.ms
            )
        }
        assert must <= set(offsets)
        if fully:
            assert set(offsets) <= set(self.newest.values())
        for start in (first, (first + end) // 2, max(first, end - 3)):
            expected = [offset for offset in offsets if offset >= start]
            assert [row["offset"] for row in rows(log, PARTITION_0, start)] == expected
        for back_ms in (0, 50, 2_000):
            time_us = self.clock() - back_ms * 1000
            found = log.offset_at(PARTITION_0, time_us)
            time = datetime.fromtimestamp(time_us / 1e6, UTC)
            assert all((row["offset"] >= found) == (row["arrival"] >= time) for row in left)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(times(10, soaked=24)))
def test_random_histories_against_a_model(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = seeded(seed)
    limited = chance.random() < 0.4
    monkeypatch.setattr(rewriting, "BATCH_BYTES", chance.choice([200, 2_000, 1 << 20]))
    if limited:
        monkeypatch.setattr(compaction, "MAX_PASS_KEYS", 12)
    segment_bytes = chance.choice([1, 1_500, 5_000, 30_000])
    log = make_log(tmp_path, clock, segment_bytes=segment_bytes)
    other = EmbeddedLog(tmp_path, clock=clock, sync=False, segment_bytes=segment_bytes)
    model = Model(log, clock)
    splits: list[Any] = []
    for _ in range(60):
        clock.ms += chance.choice([0, 1, 100, 1_000])
        step = chance.random()
        if step < 0.7:
            model.append(chance)
            continue
        if step < 0.72:
            by_size = TopicSettings(retention_bytes=chance.choice([3_000, 20_000]))
            keep = chance.choice([by_size, TopicSettings(retention_ms=3_000)])
            log.change_topic("t", settings=keep)
            chance.choice([log, other]).maintain()
            log.change_topic("t", settings=COMPACTED)
            splits = []  # those of records that are gone cannot be read
        elif step < 0.85:
            model.note_pass()
            chance.choice([log, other]).maintain()
        else:
            model.note_pass()
            chance.choice([log, other]).compact("t")
        model.check(log, fully=step >= 0.85 and not limited)
        model.check(other, fully=False)
        assert list_replaced(tmp_path / "t" / "0") == []
        for split in splits:
            start, end = split.range.start, split.range.end
            read = [row for batch in split.read() for row in batch.to_pylist()]
            assert read == rows(log, PARTITION_0, start, end)
        whole = Range(PARTITION_0, *log.extents("t")[PARTITION_0])
        splits = pickle.loads(pickle.dumps(log.splits(whole, max_records=17)))
    for _ in range(40 if limited else 2):
        model.note_pass()
        log.compact("t")
        clock.ms += TOMBSTONE_MS
    model.check(log, fully=True)
    assert None not in values(log, PARTITION_0)
    assert sound(log)
    assert sound(other)
    assert {name for name in names(tmp_path) if not name.endswith(".log")} == {
        "compacting",
        "ends",
        "lock",
    }


def test_the_time_of_a_tombstone_is_counted_from_its_first_pass(
    tmp_path: Path, clock: Clock
) -> None:
    log = make_log(tmp_path, clock)
    put(log, "v", "gone")
    put(log, None, "gone")
    clock.ms += 50 * TOMBSTONE_MS
    log.compact("t")
    start_ms = clock.ms
    # Other passes, before its time is over, do not postpone it.
    for n in range(9):
        clock.ms += TOMBSTONE_MS // 10
        put(log, str(n), "other")
        log.compact("t")
        assert pairs(log) == [(b"gone", None), (b"other", b"%d" % n)]
    clock.ms = start_ms + TOMBSTONE_MS - 1
    log.maintain()
    assert pairs(log)[0] == (b"gone", None)
    clock.ms += 1
    log.maintain()  # nothing is dirty: the time that has come is reason enough
    assert pairs(log) == [(b"other", b"8")]


def test_a_tombstone_of_one_pass_does_not_wake_the_dead(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, settings=COMPACTED._replace(tombstone_ms=0))
    put(log, "v", "gone")
    log.compact("t")
    put(log, None, "gone")
    log.compact("t")
    assert pairs(log) == [(b"gone", None)]
    log.maintain()
    assert pairs(log) == []
    assert log.extents("t")[PARTITION_0] == Extent(0, 2)
    assert log.offset_at(PARTITION_0, 0) == 2
    assert log.measure(Range(PARTITION_0, 0, 2)) > 0
    put(log, "new", "gone")
    assert pairs(EmbeddedLog(tmp_path)) == [(b"gone", b"new")]


def test_records_without_a_key_from_before_stay_for_ever(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock, settings=TopicSettings())
    for n in range(20):
        log.append("t", records([str(n), None], keys=[None, None]), partition=0)
        put(log, str(n), "k")
    with pytest.raises(UsageError, match="t: the topic is not compacted"):
        log.compact("t")
    log.change_topic("t", settings=COMPACTED)
    for _ in range(3):
        log.compact("t")
        clock.ms += 2 * TOMBSTONE_MS
    keyless = [row["value"] for row in rows(log, PARTITION_0) if row["key"] is None]
    assert keyless == [value for n in range(20) for value in (b"%d" % n, None)]
    assert pairs(log)[-1] == (b"k", b"19")
    assert len(pairs(log)) == 41


def test_a_pass_waits_until_it_is_worth_it(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock)
    keys = [str(n) for n in range(500)]
    put(log, "old", *keys)
    log.compact("t")
    before = list_files(tmp_path / "t" / "0")
    put(log, "new" * 500, "0")
    put(log, "new" * 500, "1")
    log.maintain()
    assert list_files(tmp_path / "t" / "0")[0] == before[0]  # 15,000 clean bytes, 1,500 dirty ones
    assert len(pairs(log)) == 502
    for _ in range(3):
        put(log, "newer", *keys)
    put(log, "last", "x")
    log.maintain()
    assert len(pairs(log)) == 501


def test_an_append_compacts_what_is_cheap(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path, clock)
    for n in range(100):
        put(log, str(n), "a", "b")
    assert len(pairs(log)) == 200
    monkeypatch.setattr(housekeeping, "CHEAP_BYTES", 1_000_000)
    for n in range(20):
        put(log, str(n), "a", "b")
    assert len(pairs(log)) < 20


def test_the_number_of_files_stays_bounded(tmp_path: Path, clock: Clock) -> None:
    log = make_log(tmp_path, clock)
    for n in range(300):
        clock.ms += 10
        keys = [str((n * 7 + i) % 60) for i in range(5)]
        put(log, None if n % 5 == 0 else str(n), *keys)
        if n % 6 == 0:
            log.maintain()
    log.maintain()
    folder = tmp_path / "t" / "0"
    size = sum(file.path.stat().st_size for file in list_files(folder))
    assert size < 20_000
    # No two neighbours would fit into one segment, but for what was appended since.
    assert len(list_files(folder)) < 2 * size / 2_000 + 3
    for file in list_files(folder):
        batches = file.path.read_bytes().count(b"HRB\x01")
        assert file.end_offset is None or batches <= 2


def test_a_hundred_thousand_offsets_without_a_record_are_one_batch(
    tmp_path: Path, clock: Clock
) -> None:
    log = make_log(tmp_path, clock, segment_bytes=20_000)
    for n in range(100):
        put(log, f"{n}", *["k"] * 1000)
    log.compact("t")
    assert pairs(log) == [(b"k", b"99")]
    first, last = list_files(tmp_path / "t" / "0")
    assert (first.end_offset, last.base_offset) == (100_000, 100_000)
    assert first.path.stat().st_size < 2_000
