"""Status warns where records of a unique id do not stand where their keys put them."""

import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.log import EmbeddedLog, records
from headrace.model.definitions import Stream
from headrace.observe import placing
from headrace.observe.placing import placing_warnings
from headrace.project.keys import declared_keys
from headrace.schema.types import Column, parse_type

STREAM = Stream(
    "orders",
    (Column("id", parse_type("STRING"), False), Column("card", parse_type("STRING"), True)),
    "orders",
    unique="id",
    unique_within_us=1,
    key="id",
)
VALUES = [f'{{"id": "{n}", "card": "c{n % 9}"}}' for n in range(1_000)]
IDS = [str(n) for n in range(1_000)]


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    log = EmbeddedLog(tmp_path, sync=False)
    log.create_topic("orders", partitions=4)
    return log


def test_records_where_their_keys_put_them_are_no_matter(log: EmbeddedLog) -> None:
    assert placing_warnings(log, [STREAM]) == ()
    log.append("orders", records(VALUES, keys=IDS))
    assert placing_warnings(log, [STREAM]) == ()


def test_records_without_a_key_are_counted(log: EmbeddedLog) -> None:
    log.append("orders", records(VALUES[:400], keys=IDS[:400]))
    log.append("orders", records(VALUES[:10]))
    (told,) = placing_warnings(log, [STREAM])
    assert told.startswith("stream orders: duplicates can be missed")
    assert "A look at 410 records" in told
    assert "10 without a key. Append with `headrace append orders`" in told
    assert placing_warnings(log, [replace(STREAM, unique=None)]) == ()


def test_records_without_the_declared_key_stand_by_their_id(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    """As `headrace append` puts them: duplicates of an id are in one partition again."""
    stream = replace(STREAM, key="card")
    values = [f'{{"id": "{n}"}}' for n in range(500)]
    keys = declared_keys([stream])["orders"](pa.array(values, pa.binary()))
    assert keys.to_pylist() == [str(n).encode() for n in range(500)]
    log.append("orders", records(values, keys=IDS[:500]))
    assert placing_warnings(log, [stream]) == ()
    log.append("orders", records(values[:9]))
    (told,) = placing_warnings(EmbeddedLog(tmp_path), [stream])
    assert told.endswith(
        "9 without a key. Append with `headrace append orders`, which uses the declared key, or "
        "the unique id of records without it. Records already in the log are not moved, and their "
        "counts do not change."
    )


def test_records_in_other_partitions_and_with_other_keys_are_counted(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    cards = [f"c{n % 9}" for n in range(100)]
    log.append("orders", records(VALUES[:100], keys=cards))
    (told,) = placing_warnings(log, [STREAM])
    assert " with another key than id." in told
    # Without a declared key it is not known that this one does not go with the id.
    assert placing_warnings(log, [replace(STREAM, key=None)]) == ()
    assert placing_warnings(log, [replace(STREAM, key="card")]) == ()
    log.append("orders", records(VALUES[:8], keys=IDS[:8]), partition=0)
    again = EmbeddedLog(tmp_path)  # nothing is kept of it
    (told,) = placing_warnings(again, [replace(STREAM, key="card")])
    assert " outside of the partition of the key" in told


def test_partitions_that_were_added_are_noticed(log: EmbeddedLog) -> None:
    log.append("orders", records(VALUES, keys=IDS))
    log.change_topic("orders", partitions=6)
    (told,) = placing_warnings(log, [STREAM])
    assert " outside of the partition of the key" in told


def test_a_topic_of_one_partition_or_none_cannot_be_wrong(log: EmbeddedLog) -> None:
    log.create_topic("one", partitions=1)
    log.append("one", records(VALUES[:10]))
    assert placing_warnings(log, [replace(STREAM, topic=name) for name in ("one", "none")]) == ()


def test_it_reads_a_bounded_part_and_not_at_every_call(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        log.append("orders", records(VALUES, keys=IDS))
    read: list[int] = []
    real = EmbeddedLog.read

    def count(self: EmbeddedLog, range: object, **options: object) -> object:
        read.append(range.span)  # type: ignore[attr-defined]
        return real(self, range, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(EmbeddedLog, "read", count)
    placing_warnings(log, [STREAM])
    assert sum(read) == 2 * 4 * placing.SAMPLE_RECORDS
    placing_warnings(log, [STREAM])  # nothing is new
    log.append("orders", records(VALUES[:500]))
    assert placing_warnings(log, [STREAM]) == ()  # what is new waits
    assert len(read) == 8
    later = time.monotonic() + placing.KEPT_S + 1
    monkeypatch.setattr(placing.time, "monotonic", lambda: later)
    assert len(placing_warnings(log, [STREAM])) == 1


def test_a_damaged_log_is_told_and_takes_no_status_away(log: EmbeddedLog, tmp_path: Path) -> None:
    log.append("orders", records(VALUES[:100], keys=IDS[:100]))
    log.close()
    segment = next(iter((tmp_path / "orders" / "0").glob("*.log")))
    segment.write_bytes(segment.read_bytes().replace(b'"card"', b'"cart"'))
    (told,) = placing_warnings(EmbeddedLog(tmp_path), [STREAM])
    assert told.startswith("stream orders: its records cannot be looked at: ")
    assert f"{segment} is damaged at byte" in told
