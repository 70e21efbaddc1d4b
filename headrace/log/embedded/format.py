"""The bytes of a segment file: one header, then batches, each as one append wrote it.

All numbers are little-endian; header, producer id and payload are padded with zeros to 8 bytes, so
that Arrow's buffers are aligned when the file is mapped. A released version is never edited.

Segment header, version 1 (`<20-digit base offset>.log` begins with it):

    byte  size  field
       0     3  magic "HRS"
       3     1  version, 1
       4     4  length of this header: the first batch begins there
       8     8  checksum: xxh3_64 of the bytes [16, length)
      16     8  base offset: that of the first record of the segment, now or later
      24     8  last arrival before this segment, in µs since 1970; NO_ARRIVAL if there is none
      32     8  bytes of the producers' snapshot
      40     …  producers as they stood before this segment: JSON [[id, epoch, sequence], …],
                longest silent first, so that the state of a partition is found in its last
                segment alone

Batch, version 1:

    byte  size  field
       0     3  magic "HRB"
       3     1  version, 1
       4     4  length of the whole batch, padding included: the next one begins there
       8     8  checksum: xxh3_64 of the bytes [16, length)
      16     8  base offset: that of its first record; the others follow without gaps
      24     8  arrival of all its records, in µs since 1970
      32     4  count of records, at least 1 (with flag 2 also 0)
      36     4  bytes of the producer id; 0: appended without a producer
      40     8  producer epoch, 0 without a producer
      48     8  producer sequence, 0 without a producer
      56     4  bytes of the payload
      60     4  flags: 1, the batch belongs to a transaction; 2, it is compacted; a reader refuses
                what it does not know, and both at once
      64     8  the transaction's number, only with flag 1 (transactions.py)
      64    24  what is covered, only with flag 2: see below
       …     …  producer id, UTF-8
       …     …  payload: an Arrow IPC encapsulated record batch of base.APPENDS

A compacted batch (compaction.py) covers offsets of which some have no record any more. It has no
producer: those that matter are in the header of the last segment, which is never compacted. Base
offset is then the first offset covered, arrival that of its first record, and

    byte  size  field
      64     8  end offset: the one after the last that is covered
      72     8  arrival of its last record, in µs since 1970; NO_ARRIVAL without records
      80     8  the first of the moments from which a tombstone in it may go; NEVER without one

Its payload is of base.RECORDS, so every record keeps offset and arrival; if there are tombstones it
is of STORED, which adds `until` to them: from when they may go, in µs since 1970.

Magic and length stand outside the checksum: a wrong magic is seen as such, and a wrong length makes
the checksum cover other bytes and fail.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from headrace.log.base import APPENDS, RECORDS, Producer

__all__ = [
    "BATCH_MAGIC",
    "NEVER",
    "NO_ARRIVAL",
    "STORED",
    "BatchHeader",
    "Covered",
    "SegmentHeader",
    "Unreadable",
    "check_batch",
    "check_place",
    "decode_appended",
    "decode_batch_header",
    "decode_producer",
    "decode_records",
    "decode_segment_header",
    "decode_stored",
    "decode_transaction",
    "encode_batch",
    "encode_compacted",
    "encode_payload",
    "encode_segment_header",
]

NO_ARRIVAL = -(1 << 63)
NEVER = (1 << 63) - 1
#: A record as compaction sees it; `until` is null but for tombstones that were compacted before.
STORED = RECORDS.append(pa.field("until", pa.int64()))
BATCH_MAGIC = b"HRB\x01"

_SEGMENT_MAGIC = b"HRS\x01"
_SEGMENT = struct.Struct("<4sIQqqQ")
_BATCH = struct.Struct("<4sIQqqIIqqII")
_BATCH_CHECKED = struct.Struct("<qqIIqqII")
_ARRIVAL_TYPE = RECORDS.field("arrival").type
_CHECKED_FROM = 16
_NUMBER = struct.Struct("<Q")
_COVERED = struct.Struct("<qqq")
_IN_TRANSACTION = 1
_COMPACTED = 2
# What stands between the fixed part of a batch and the producer's id, by its flags.
_EXTRA_BYTES = {0: 0, _IN_TRANSACTION: _NUMBER.size, _COMPACTED: _COVERED.size}


class Unreadable(Exception):
    """These bytes are not a whole batch or header: the caller decides if that is a torn tail."""


class SegmentHeader(NamedTuple):
    """What a segment says about the partition before it."""

    length: int
    base_offset: int
    last_arrival_us: int
    producers: dict[str, Producer]


class Covered(NamedTuple):
    """What only a compacted batch says."""

    end_offset: int
    last_arrival_us: int
    until_us: int


class BatchHeader(NamedTuple):
    """The fixed part of a stored batch."""

    length: int
    checksum: int
    base_offset: int
    arrival_us: int
    records: int
    producer_bytes: int
    epoch: int
    sequence: int
    payload_bytes: int
    flags: int
    covered: Covered | None = None

    @property
    def content_start(self) -> int:
        """Where the producer's id begins, from the start of the batch."""
        return _BATCH.size + _EXTRA_BYTES[self.flags]

    @property
    def payload_start(self) -> int:
        """Where the payload begins, from the start of the batch."""
        return self.content_start + self.producer_bytes + -self.producer_bytes % 8

    @property
    def end_offset(self) -> int:
        """The offset after the last one that it covers."""
        if self.covered is not None:
            return self.covered.end_offset
        return self.base_offset + self.records

    @property
    def last_arrival_us(self) -> int:
        """When its last record arrived; NO_ARRIVAL if it has none."""
        return self.arrival_us if self.covered is None else self.covered.last_arrival_us


def _padding(length: int) -> bytes:
    return bytes(-length % 8)


def encode_segment_header(
    base_offset: int, *, last_arrival_us: int, producers: Mapping[str, Producer]
) -> bytes:
    """Return the header of a new segment."""
    snapshot = json.dumps([list(producer) for producer in producers.values()]).encode()
    length = _SEGMENT.size + len(snapshot) + len(_padding(len(snapshot)))
    checked = struct.pack("<qqQ", base_offset, last_arrival_us, len(snapshot))
    checked += snapshot + _padding(len(snapshot))
    checksum = xxhash.xxh3_64_intdigest(checked)
    return struct.pack("<4sIQ", _SEGMENT_MAGIC, length, checksum) + checked


def decode_segment_header(view: memoryview, base_offset: int) -> SegmentHeader:
    """Return the header of the segment with a base offset.

    Unreadable: it is damaged, of another version, or of another segment.
    """
    if len(view) < _SEGMENT.size:
        raise Unreadable("the file is shorter than a segment header")
    magic, length, checksum, base, last_arrival_us, snapshot_bytes = _SEGMENT.unpack_from(view)
    if magic != _SEGMENT_MAGIC:
        raise Unreadable(f"a segment header of version 1 begins with HRS and 1, not {magic!r}")
    if not _SEGMENT.size + snapshot_bytes <= length <= len(view):
        raise Unreadable("the length of the segment header is wrong")
    if xxhash.xxh3_64_intdigest(view[_CHECKED_FROM:length]) != checksum:
        raise Unreadable("the checksum of the segment header fails")
    if base != base_offset:
        raise Unreadable(f"the header is that of the segment from offset {base} on")
    snapshot = json.loads(bytes(view[_SEGMENT.size : _SEGMENT.size + snapshot_bytes]))
    producers = {entry[0]: Producer(*entry) for entry in snapshot}
    return SegmentHeader(length, base, last_arrival_us, producers)


def encode_payload(batch: pa.RecordBatch) -> Any:
    """Return the records as an encapsulated IPC message: the part that needs no lock."""
    return batch.serialize()


def encode_batch(
    payload: Any,
    *,
    count: int,
    base_offset: int,
    arrival_us: int,
    producer: Producer | None,
    transaction: int | None = None,
) -> bytes:
    """Return the bytes of a stored batch. The payload is what `encode_payload` made."""
    name = producer.id.encode() if producer else b""
    epoch, sequence = (producer.epoch, producer.sequence) if producer else (0, 0)
    flags = 0 if transaction is None else _IN_TRANSACTION
    checked = _BATCH_CHECKED.pack(
        base_offset, arrival_us, count, len(name), epoch, sequence, payload.size, flags
    )
    if transaction is not None:
        checked += _NUMBER.pack(transaction)
    return _frame(checked + name + _padding(len(name)), payload)


def encode_compacted(records: pa.RecordBatch, *, base_offset: int, end_offset: int) -> bytes:
    """Return the bytes of a compacted batch of STORED that covers `[base_offset, end_offset)`."""
    count = records.num_rows
    arrivals = records.column("arrival").view(pa.int64())
    until = records.column("until")
    until_us = NEVER
    if until.null_count == count:
        records = records.select(RECORDS.names)
    else:
        until_us = pc.min(until).as_py()
    payload = records.serialize()
    first_us, last_us = (arrivals[0].as_py(), arrivals[-1].as_py()) if count else (NO_ARRIVAL,) * 2
    checked = _BATCH_CHECKED.pack(
        base_offset, first_us, count, 0, 0, 0, payload.size, _COMPACTED
    ) + _COVERED.pack(end_offset, last_us, until_us)
    return _frame(checked, payload)


def _frame(checked: bytes, payload: Any) -> bytes:
    padding = _padding(payload.size)
    digest = xxhash.xxh3_64(checked)
    digest.update(payload)
    digest.update(padding)
    length = _CHECKED_FROM + len(checked) + payload.size + len(padding)
    start = struct.pack("<4sIQ", BATCH_MAGIC, length, digest.intdigest())
    return b"".join((start, checked, payload, padding))


def decode_batch_header(view: memoryview, position: int) -> BatchHeader:
    """Return the header at a position, its checksum unseen. Unreadable: no batch begins there."""
    if position + _BATCH.size > len(view):
        raise Unreadable("the file ends within a batch header")
    magic, *fields = _BATCH.unpack_from(view, position)
    if magic != BATCH_MAGIC:
        raise Unreadable(f"a batch of version 1 begins with HRB and 1, not {magic!r}")
    header = BatchHeader(*fields)
    known = header.flags in _EXTRA_BYTES
    if header.flags == _COMPACTED:
        header = _decode_covered(view, position, header)
    fits = header.covered is not None or header.records > 0
    if not known or not fits or header.length != _batch_length(header):
        raise Unreadable("the fields of the batch header do not fit each other")
    if position + header.length > len(view):
        raise Unreadable("the file ends within a batch")
    return header


def _batch_length(header: BatchHeader) -> int:
    return header.payload_start + header.payload_bytes + -header.payload_bytes % 8


def _decode_covered(view: memoryview, position: int, header: BatchHeader) -> BatchHeader:
    if position + _BATCH.size + _COVERED.size > len(view):
        raise Unreadable("the file ends within a batch header")
    covered = Covered._make(_COVERED.unpack_from(view, position + _BATCH.size))
    if covered.end_offset - header.base_offset < max(header.records, 1):
        raise Unreadable("the batch covers fewer offsets than it has records")
    return header._replace(covered=covered)


def check_place(header: BatchHeader, offset: int) -> None:
    """Verify that a batch covers an offset. Unreadable: it belongs elsewhere."""
    if not header.base_offset <= offset < header.end_offset:
        raise Unreadable(f"the batch holds the offsets from {header.base_offset} on")


def check_batch(view: memoryview, position: int, header: BatchHeader) -> None:
    """Verify the checksum of a whole batch. Unreadable: it fails."""
    body = view[position + _CHECKED_FROM : position + header.length]
    if xxhash.xxh3_64_intdigest(body) != header.checksum:
        raise Unreadable("the checksum of the batch fails")


def decode_producer(view: memoryview, position: int, header: BatchHeader) -> Producer | None:
    """Return who appended a batch; None if no producer was named."""
    if not header.producer_bytes:
        return None
    start = position + header.content_start
    name = bytes(view[start : start + header.producer_bytes]).decode()
    return Producer(name, header.epoch, header.sequence)


def decode_transaction(view: memoryview, position: int, header: BatchHeader) -> int | None:
    """Return the number of the transaction that a batch belongs to, if it does."""
    if header.flags != _IN_TRANSACTION:
        return None
    return int(_NUMBER.unpack_from(view, position + _BATCH.size)[0])


def decode_records(buffer: Any, position: int, header: BatchHeader) -> pa.RecordBatch:
    """Return a batch's records as RECORDS; keys, values and headers stay where they are mapped."""
    if header.covered is not None:
        return decode_stored(buffer, position, header).select(RECORDS.names)
    count = header.records
    stored = decode_appended(buffer, position, header)
    offset = np.arange(header.base_offset, header.end_offset, dtype=np.int64)
    arrival = np.full(count, header.arrival_us, np.int64)
    # Not pa.array: its first call imports pandas (0.3 s), each call asks that about types.
    columns = [
        pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(offset)]),
        pa.Array.from_buffers(_ARRIVAL_TYPE, count, [None, pa.py_buffer(arrival)]),
        *stored.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


def decode_appended(buffer: Any, position: int, header: BatchHeader) -> pa.RecordBatch:
    """Return the records of a batch that is not compacted as they were appended, as APPENDS."""
    return _decode_payload(buffer, position, header, APPENDS)


def decode_stored(buffer: Any, position: int, header: BatchHeader) -> pa.RecordBatch:
    """Return the records of a compacted batch as STORED."""
    assert header.covered is not None
    if header.covered.until_us != NEVER:
        return _decode_payload(buffer, position, header, STORED)
    records = _decode_payload(buffer, position, header, RECORDS)
    columns = [*records.columns, pa.nulls(header.records, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, schema=STORED)


def _decode_payload(
    buffer: Any, position: int, header: BatchHeader, schema: pa.Schema
) -> pa.RecordBatch:
    start = position + header.payload_start
    stored = pa.ipc.read_record_batch(buffer.slice(start, header.payload_bytes), schema)
    if stored.num_rows != header.records:
        raise Unreadable("the payload holds another number of records than the batch header says")
    return stored
