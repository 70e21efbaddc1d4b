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
      32     4  count of records, at least 1
      36     4  bytes of the producer id; 0: appended without a producer
      40     8  producer epoch, 0 without a producer
      48     8  producer sequence, 0 without a producer
      56     4  bytes of the payload
      60     4  flags: 1, the batch belongs to a transaction; a reader refuses one it does not know
      64     8  the transaction's number, only with flag 1 (transactions.py)
       …     …  producer id, UTF-8
       …     …  payload: an Arrow IPC encapsulated record batch of base.APPENDS

Magic and length stand outside the checksum: a wrong magic is seen as such, and a wrong length makes
the checksum cover other bytes and fail.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from headrace.log.base import APPENDS, RECORDS, Producer

__all__ = [
    "BATCH_MAGIC",
    "NO_ARRIVAL",
    "BatchHeader",
    "SegmentHeader",
    "Unreadable",
    "check_batch",
    "check_place",
    "decode_batch_header",
    "decode_producer",
    "decode_records",
    "decode_segment_header",
    "decode_transaction",
    "encode_batch",
    "encode_payload",
    "encode_segment_header",
]

NO_ARRIVAL = -(1 << 63)
BATCH_MAGIC = b"HRB\x01"

_SEGMENT_MAGIC = b"HRS\x01"
_SEGMENT = struct.Struct("<4sIQqqQ")
_BATCH = struct.Struct("<4sIQqqIIqqII")
_BATCH_CHECKED = struct.Struct("<qqIIqqII")
_ARRIVAL_TYPE = RECORDS.field("arrival").type
_CHECKED_FROM = 16
_NUMBER = struct.Struct("<Q")
_IN_TRANSACTION = 1


class Unreadable(Exception):
    """These bytes are not a whole batch or header: the caller decides if that is a torn tail."""


class SegmentHeader(NamedTuple):
    """What a segment says about the partition before it."""

    length: int
    base_offset: int
    last_arrival_us: int
    producers: dict[str, Producer]


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

    @property
    def content_start(self) -> int:
        """Where the producer's id begins, from the start of the batch."""
        return _BATCH.size + (_NUMBER.size if self.flags else 0)

    @property
    def payload_start(self) -> int:
        """Where the payload begins, from the start of the batch."""
        return self.content_start + self.producer_bytes + -self.producer_bytes % 8

    @property
    def end_offset(self) -> int:
        """The offset after its last record."""
        return self.base_offset + self.records


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
    checked += name + _padding(len(name))
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
    header = BatchHeader._make(fields)
    length = header.payload_start + header.payload_bytes + -header.payload_bytes % 8
    known = header.flags in (0, _IN_TRANSACTION)
    if header.length != length or header.records == 0 or not known:
        raise Unreadable("the fields of the batch header do not fit each other")
    if position + header.length > len(view):
        raise Unreadable("the file ends within a batch")
    return header


def check_place(header: BatchHeader, offset: int) -> None:
    """Verify that a batch holds an offset. Unreadable: it belongs elsewhere."""
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
    if not header.flags:
        return None
    return int(_NUMBER.unpack_from(view, position + _BATCH.size)[0])


def decode_records(buffer: Any, position: int, header: BatchHeader) -> pa.RecordBatch:
    """Return a batch's records as RECORDS; keys, values and headers stay where they are mapped."""
    start = position + header.payload_start
    stored = pa.ipc.read_record_batch(buffer.slice(start, header.payload_bytes), APPENDS)
    count = header.records
    if stored.num_rows != count:
        raise Unreadable("the payload holds another number of records than the batch header says")
    offset = np.arange(header.base_offset, header.end_offset, dtype=np.int64)
    arrival = np.full(count, header.arrival_us, np.int64)
    # Not pa.array: its first call imports pandas (0.3 s), each call asks that about types.
    columns = [
        pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(offset)]),
        pa.Array.from_buffers(_ARRIVAL_TYPE, count, [None, pa.py_buffer(arrival)]),
        *stored.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)
