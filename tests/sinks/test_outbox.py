"""Late and dead records reach their topics once, also when their source has lost some."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.ledger.entries import OutboxEntry
from headrace.log import (
    MAX_RECORD_BYTES,
    EmbeddedLog,
    Partition,
    Producer,
    Range,
    TopicSettings,
    records,
)
from headrace.log.sharing import PRODUCER_HEADER_BYTES
from headrace.sinks.outbox import publish_entry
from headrace.testing.log.suite import rows

SOURCE = Partition("clicks", 1)


def entry(offsets: list[int]) -> OutboxEntry:
    reasons = pa.array([f"reason {offset}" for offset in offsets])
    source = Range(SOURCE, offsets[0], offsets[-1] + 1)
    return OutboxEntry("clicks.dead", source, "clicks.dead@1a2b", pa.array(offsets), reasons)


def published(log: EmbeddedLog) -> list[tuple[Any, ...]]:
    return [
        (row["key"], row["value"], *(header["value"].decode() for header in row["headers"]))
        for row in rows(log, Partition("clicks.dead", 1))
    ]


def test_records_are_copied_with_the_reason_and_their_place(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False)
    log.create_topic("clicks", partitions=2)
    log.append("clicks", records([f"v{n}" for n in range(9)], keys=["k"] * 9), partition=1)
    assert publish_entry(log, entry([2, 3, 7]), epoch=1) == 3
    assert publish_entry(log, entry([2, 3, 7]), epoch=2) == 0  # they are there
    assert publish_entry(log, entry([7, 8]), epoch=2) == 1
    assert published(log) == [
        (b"k", f"v{n}".encode(), f"reason {n}", "1a2b", "clicks", "1", str(n)) for n in (2, 3, 7, 8)
    ]
    log.close()


def test_what_retention_took_is_still_told(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False, segment_bytes=200)
    log.create_topic("clicks", partitions=2, settings=TopicSettings(retention_bytes=1))
    for n in range(6):
        log.append("clicks", records([f"v{n}"]), partition=1)
    log.maintain()
    first = log.extents("clicks")[SOURCE].first_offset
    assert 0 < first < 6
    assert publish_entry(log, entry(list(range(6))), epoch=1) == 6
    assert published(log) == [
        (
            None,
            f"v{n}".encode() if n >= first else None,
            *(f"reason {n}", "1a2b", "clicks", "1", str(n)),
        )
        for n in range(6)
    ]
    everything = entry([0, 1])
    log.delete_topic("clicks.dead")
    assert publish_entry(log, everything, epoch=1) == 2
    assert [row[1] for row in published(log)] == [None, None]
    log.close()


def test_a_record_too_large_to_be_copied_is_still_told(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path, sync=False)
    log.create_topic("clicks", partitions=2)
    # As others may write to Kafka: more than a record of ours may have.
    large = records([b"x" * MAX_RECORD_BYTES, b"x"], keys=[b"y" * PRODUCER_HEADER_BYTES, b"y"])
    log.append("clicks", large, partition=1, producer=Producer("others", 1, 1))
    assert publish_entry(log, entry([0, 1]), epoch=1) == 2
    assert [row[:3] for row in published(log)] == [
        (None, None, "reason 0"),
        (b"y", b"x", "reason 1"),
    ]
    log.close()
