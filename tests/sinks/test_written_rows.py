"""Rows of written streams reach their topics once, wherever keys and partitions send them.

Method: rows as a store lets them wait, published again and again, without Spark.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace import faults
from headrace.errors import UsageError
from headrace.log import EmbeddedLog, Partition, TopicSettings
from headrace.sinks.written import publish_written
from headrace.store.base import MAX_ORDINALS, WRITTEN_ROWS
from headrace.testing.log.suite import rows as read_rows


class Waiting:
    """A store of nothing but rows that wait."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    @contextmanager
    def open(self) -> Iterator["Waiting"]:
        yield self

    def written_rows(self, *, max_rows: int, max_bytes: int) -> pa.Table:
        return self.rows.slice(0, max_rows)

    def wrote(self, number: int) -> None:
        numbers = self.rows["number"].to_numpy()
        self.rows = self.rows.filter(pa.array(numbers > number))


def waiting(
    offsets: range, *, partition: int = 1, by_key: bool = False, first: int = 1, **changes: Any
) -> pa.Table:
    rows = [
        {
            "number": first + at,
            "topic": "out",
            "producer_id": f"headrace.stream:loud<notes/{partition}",
            "version": "v1",
            "source_topic": "notes",
            "source_partition": partition,
            "source_offset": offset,
            "sequence": offset * MAX_ORDINALS,
            "by_key": by_key,
            "key": f"k{offset % 5}".encode(),
            "value": f"v{offset}",
            **changes,
        }
        for at, offset in enumerate(offsets)
    ]
    return pa.Table.from_pylist(rows, schema=WRITTEN_ROWS)


def publish(log: EmbeddedLog, rows: pa.Table, epoch: int = 1) -> int:
    return publish_written(log, Waiting(rows), epoch)  # type: ignore[arg-type]


def held(log: EmbeddedLog, partition: int) -> list[str]:
    return [row["value"].decode() for row in read_rows(log, Partition("out", partition))]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path, sync=False)
    log.create_topic("notes", partitions=3)
    yield log
    faults.disarm()
    log.close()


def test_a_row_stays_in_the_partition_of_its_source_and_says_where_it_came_from(
    log: EmbeddedLog,
) -> None:
    rows = waiting(range(2), partition=2, watermark_us=-5, branch=1, ordinals="3,0")
    assert publish(log, rows) == 2
    assert publish(log, rows, epoch=2) == 0
    assert log.topic("out").partitions == 3
    [first, second] = read_rows(log, Partition("out", 2))
    assert (first["key"], first["value"]) == (b"k0", b"v0")
    headers = [(each["name"], each["value"].decode()) for each in second["headers"]]
    assert headers == [
        ("headrace.version", "v1"),
        ("headrace.topic", "notes"),
        ("headrace.partition", "2"),
        ("headrace.offset", "1"),
        ("headrace.branch", "1"),
        ("headrace.ordinals", "3,0"),
        ("headrace.watermark", "-5"),
    ]
    publish(log, waiting(range(2, 3), partition=2))
    named = [each["name"] for each in read_rows(log, Partition("out", 2))[2]["headers"]]
    assert named == [name for name, _ in headers[:4]]


def test_what_is_there_is_left_out_by_another_store_too(log: EmbeddedLog) -> None:
    publish(log, waiting(range(5)))
    assert publish(log, waiting(range(9), first=100, version="v2"), epoch=7) == 4
    assert held(log, 1) == [f"v{offset}" for offset in range(9)]
    assert publish(log, waiting(range(9), partition=0)) == 9  # another producer


@pytest.mark.parametrize("point", ["stream_before_append", "stream_after_append"])
def test_a_crash_between_topic_and_ledger_repeats_nothing(log: EmbeddedLog, point: str) -> None:
    store = Waiting(pa.concat_tables([waiting(range(5)), waiting(range(3), partition=2, first=6)]))
    for _ in range(3):
        faults.arm(point)
        with pytest.raises(faults.Crash):
            publish_written(log, store, 1)  # type: ignore[arg-type]
    publish_written(log, store, 1)  # type: ignore[arg-type]
    assert held(log, 1) == [f"v{offset}" for offset in range(5)]
    assert held(log, 2) == [f"v{offset}" for offset in range(3)]
    assert not store.rows.num_rows


def test_keys_find_their_partition_and_new_partitions_repeat_nothing(log: EmbeddedLog) -> None:
    log.create_topic("out", partitions=2)
    publish(log, waiting(range(20), by_key=True))
    assert all(held(log, partition) for partition in (0, 1))
    log.change_topic("out", partitions=5)
    assert publish(log, waiting(range(30), by_key=True), epoch=2) == 10
    found = [value for partition in range(5) for value in held(log, partition)]
    assert sorted(found) == sorted(f"v{offset}" for offset in range(30))


def test_a_piece_that_goes_to_several_partitions_is_there_or_not(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    log.create_topic("out", partitions=2)
    faults.arm("log_in_transaction")
    with pytest.raises(faults.Crash):
        publish(log, waiting(range(20), by_key=True))
    again = EmbeddedLog(tmp_path, sync=False)
    assert publish(again, waiting(range(20), by_key=True), epoch=2) == 20
    found = [value for partition in (0, 1) for value in held(again, partition)]
    assert sorted(found) == sorted(f"v{offset}" for offset in range(20))
    again.close()


def test_partitions_that_were_added_to_the_source_are_added_to_the_topic(log: EmbeddedLog) -> None:
    publish(log, waiting(range(2), partition=0))
    log.change_topic("notes", partitions=6)
    publish(log, waiting(range(2), partition=5))
    assert held(log, 5) == ["v0", "v1"]


def test_rows_of_versions_that_go_by_key_or_not_keep_their_order(log: EmbeddedLog) -> None:
    parts = [
        waiting(range(3), first=1),
        waiting(range(3, 6), first=4, by_key=True, version="v2"),
        waiting(range(6, 9), first=7),
    ]
    assert publish(log, pa.concat_tables(parts)) == 9


def test_a_compacted_topic_takes_no_row_without_a_key(log: EmbeddedLog) -> None:
    log.create_topic("out", partitions=3, settings=TopicSettings(compact=True))
    with pytest.raises(UsageError, match="out: record 0 of this append has no key"):
        publish(log, waiting(range(2), key=None))
    assert publish(log, waiting(range(2))) == 2
