"""Read a topic's records in the order of their arrival, and show one to people or programs."""

import heapq
import itertools
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.cli.log.starts import find_offsets, to_micros
from headrace.cli.text.output import moment, printable
from headrace.consume import join_group
from headrace.consume.groups import MemberSettings
from headrace.log import Log, Partition, Range

__all__ = ["TailRecord", "group_records", "record_text", "record_to_json", "tail_records"]

POLL_SECONDS = 0.1
# How long a member waits for its partitions when it is not to follow.
JOIN_SECONDS = 30.0
# Records are shown one by one, so there is no use in decoding many at once.
_BATCH_RECORDS = 1_000
_NO_ARRIVAL = datetime.min.replace(tzinfo=UTC)


class TailRecord(NamedTuple):
    """A record and where it stands; the arrival is None where the log did not stamp it."""

    arrival: datetime | None
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[dict[str, Any]]
    topic: str


def tail_records(
    log: Log, topic: str, start: str, *, follow: bool, limit: int | None
) -> Iterator[TailRecord]:
    """Yield records from a start on: "earliest", "latest", an offset in each partition, or a time.

    Within a partition they come in offset order; between partitions by arrival, as far as what is
    there at one look can tell. With `follow` it does not end.
    """
    return itertools.islice(_all_records(log, topic, start, follow=follow), limit)


def _all_records(log: Log, topic: str, start: str, *, follow: bool) -> Iterator[TailRecord]:
    position = find_offsets(log, topic, start)
    while True:
        ranges = []
        for partition, extent in log.extents(topic).items():
            # A partition that was added meanwhile is new from its start. What retention removed
            # of the others before it was shown is an error, which `read` raises.
            begin = position.get(partition, extent.first_offset)
            if begin < extent.end_offset:
                ranges.append(Range(partition, begin, extent.end_offset))
                position[partition] = extent.end_offset
        yield from heapq.merge(*(_read(log, range) for range in ranges), key=_order)
        if not follow:
            return
        if not ranges:
            sleep(POLL_SECONDS)


def group_records(
    log: Log, topic: str, group: str, start: str, *, follow: bool, limit: int | None
) -> Iterator[TailRecord]:
    """Yield records as a member of a group; each poll is committed once all of it was taken.

    So a record that was not taken is shown again to whoever comes next. Without `follow` it ends
    when nothing more comes.
    """
    settings = MemberSettings(start="latest" if start == "latest" else "earliest")
    left = limit
    with closing(join_group(log, group, [topic], settings=settings)) as member:
        deadline = monotonic() + JOIN_SECONDS
        while left is None or left > 0:
            most = _BATCH_RECORDS if left is None else min(left, _BATCH_RECORDS)
            polled = member.poll(timeout_s=1.0, max_records=most)
            for partition, batch in polled:
                yield from _records(partition, batch)
                left = left if left is None else left - batch.num_rows
            if polled:
                member.commit()
            elif not follow and (member.assigned or monotonic() > deadline):
                return


def _order(record: TailRecord) -> tuple[datetime, int, int]:
    return record.arrival or _NO_ARRIVAL, record.partition, record.offset


def _read(log: Log, range: Range) -> Iterator[TailRecord]:
    for batch in log.read(range, max_batch_records=_BATCH_RECORDS):
        yield from _records(range.partition, batch)


def _records(partition: Partition, batch: pa.RecordBatch) -> Iterator[TailRecord]:
    for row in batch.to_pylist():
        yield TailRecord(
            row["arrival"],
            partition.number,
            row["offset"],
            row["key"],
            row["value"],
            row["headers"] or [],
            partition.topic,
        )


def record_text(record: TailRecord) -> str:
    """Return a record as one line that no terminal misreads."""
    arrival = "-" if record.arrival is None else moment(to_micros(record.arrival))
    place = f"{record.topic}/{record.partition}@{record.offset}"
    key = "-" if record.key is None else _text(record.key)
    value = "null" if record.value is None else _text(record.value)
    headers = "".join(f"  {printable(h['name'])}={_text(h['value'])}" for h in record.headers)
    return f"{place}  {arrival}  {key}  {value}{headers}"


def _text(data: bytes | None) -> str:
    return "null" if data is None else printable(data.decode(errors="backslashreplace"))


def record_to_json(record: TailRecord) -> dict[str, Any]:
    """Return a record as JSON; bytes that are not UTF-8 text as {"base64": ...}."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "arrival_us": None if record.arrival is None else to_micros(record.arrival),
        "key": _json_bytes(record.key),
        "value": _json_bytes(record.value),
        "headers": [
            {"name": header["name"], "value": _json_bytes(header["value"])}
            for header in record.headers
        ],
    }


def _json_bytes(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode()}
