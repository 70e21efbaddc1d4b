"""Requests that were carried out under an Idempotency-Key, so that none is carried out twice.

They are kept in the topic REQUESTS_TOPIC of the same log, one record each, which is appended
together with what the request brings: both are there, or neither. Format of a record, version 1:

    key      16 bytes: the BLAKE2b of the request's topic and Idempotency-Key
    value    {"version": 1, "topic": text, "digest": hex of the BLAKE2b of all that was sent,
              "records": number, "without_key": number,
              "shares": [[partition, offset, records, hex of the first, hex of all], ...]}

The offset of a share is the partition's end just before the append: its records are there or
later. That matters only where the engine ended and another one is asked: the records are then
looked for by their content.

Promises:
- A request is carried out once, also where the engine dies at any point, and where two engines
  write to one log. The records have a producer whose sequence is one more than that of the newest
  record that was read: an engine that does not know of the newest ones cannot append.
- Known are the newest MAX_KNOWN, MAX_KNOWN_BYTES of them at most, and of those that an engine
  finds when it starts the ones that are younger than KEPT_MS. Others are taken for new ones.
- Nothing is read or kept in memory before the first request that has a key.
Not promised: the same offsets once retention or compaction removed its records (PositionLost).
"""

import hashlib
import json
import threading
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.errors import KeyReused, LogError, PositionLost, TopicExists
from headrace.log.base import Append, Log, Partition, Producer, Range, TopicSettings
from headrace.log.names import REQUESTS_TOPIC
from headrace.log.records import records

__all__ = ["KEPT_MS", "MAX_KNOWN", "Done", "Planned", "Request", "Requests"]

VERSION = 1
MAX_KNOWN = 65_536
MAX_KNOWN_BYTES = 32 << 20
KEPT_MS = 24 * 3_600_000
#: How far behind its share's offset a record is looked for.
_LOOKED_RECORDS = 65_536
_PLACE = Partition(REQUESTS_TOPIC, 0)
_DIGEST_BYTES = 16
_SHARE_DIGEST_BYTES = 8


@dataclass(frozen=True)
class Request:
    """What makes a request the same as another: its name, and a digest of all that was sent."""

    name: bytes
    digest: str

    @classmethod
    def of(cls, topic: str, key: str, sent: Sequence[bytes]) -> "Request":
        """Return the request with an Idempotency-Key; `sent` are its parameters and its body."""
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for part in sent:
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return cls(_hash(f"{topic}\0{key}".encode()), digest.hexdigest())


@dataclass(frozen=True)
class Done:
    """What a request did."""

    topic: str
    records: int
    ranges: tuple[Range, ...]  # one or more of each partition, in the order of its records
    without_key: int


@dataclass(frozen=True)
class Planned:
    """What a new request is about to bring: its shares, and where each partition ended before."""

    request: Request
    topic: str
    shares: tuple[tuple[int, int, pa.RecordBatch], ...]  # partition, end offset, records
    without_key: int

    def entry(self) -> dict[str, Any]:
        """Return what is kept of it."""
        shares = [
            [number, offset, rows.num_rows, *_digests(rows)] for number, offset, rows in self.shares
        ]
        return {
            "version": VERSION,
            "topic": self.topic,
            "digest": self.request.digest,
            "records": sum(rows.num_rows for _, _, rows in self.shares),
            "without_key": self.without_key,
            "shares": shares,
        }


class Requests:
    """The requests that are known. Its user holds `mutex` from `find` until `note` or `forget`."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.mutex = threading.Lock()
        self._known: OrderedDict[bytes, bytes] = OrderedDict()  # by name: the value of its record
        self._known_bytes = 0
        self._read_up_to = 0  # of the topic
        self._newest: Producer | None = None  # of the newest record; None: to be asked for
        self._planned: list[tuple[Request, dict[str, Any]]] = []

    def find(self, request: Request) -> Done | None:
        """Return what a request did; None: it is new. KeyReused, PositionLost, LogError."""
        self._catch_up()
        value = self._known.get(request.name)
        if value is None:
            return None
        entry = json.loads(value)
        if entry["digest"] != request.digest:
            raise KeyReused(
                f"{entry['topic']}: this Idempotency-Key was used before, for another body or "
                f"other parameters. Nothing was appended; use a new key for each request, and the "
                f"same one only to send the very same request again."
            )
        if "ranges" not in entry:
            entry["ranges"] = self._look_for(entry)
            del entry["shares"]
            self._remember(request.name, _encode(entry))
        ranges = tuple(
            Range(Partition(entry["topic"], number), start, end)
            for number, start, end in entry["ranges"]
        )
        return Done(entry["topic"], entry["records"], ranges, entry["without_key"])

    def plan(self, planned: Sequence[Planned]) -> Append:
        """Return what is appended together with the records of new requests."""
        assert self._newest is not None, "`find` was called before"
        self._planned = [(each.request, each.entry()) for each in planned]
        table = records(
            [_encode(entry) for _, entry in self._planned],
            keys=[request.name for request, _ in self._planned],
        )
        producer = self._newest._replace(sequence=self._newest.sequence + 1)
        return Append(REQUESTS_TOPIC, table, _PLACE.number, producer)

    def note(self, ranges: Sequence[Sequence[Range]]) -> None:
        """Note where the records of each planned request are, now that they are stored."""
        assert self._newest is not None, "`plan` was called before"
        self._newest = self._newest._replace(sequence=self._newest.sequence + 1)
        for (request, entry), own in zip(self._planned, ranges, strict=True):
            entry["ranges"] = [[each.partition.number, each.start, each.end] for each in own]
            del entry["shares"]
            self._remember(request.name, _encode(entry))
        self._planned = []

    def forget(self) -> None:
        """Look at the topic again before the next request: what became of the last is unknown."""
        self._newest = None

    def _catch_up(self) -> None:
        """Read what other engines wrote, or what was written before this one started."""
        if self._newest is not None:
            return
        settings = TopicSettings(retention_ms=KEPT_MS, retention_bytes=2 * MAX_KNOWN_BYTES)
        with suppress(TopicExists):
            self._log.create_topic(REQUESTS_TOPIC, partitions=1, settings=settings)
        epoch = self._log.begin_producer(REQUESTS_TOPIC)
        # Before the records: one that is appended in between makes the next sequence too small.
        sequence = self._log.last_sequence(_PLACE, REQUESTS_TOPIC) or 0
        first_offset, end_offset = self._log.extents(REQUESTS_TOPIC)[_PLACE]
        start = max(first_offset, end_offset - MAX_KNOWN, self._read_up_to)
        for batch in self._log.read(Range(_PLACE, start, end_offset)):
            names, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
            for name, value in zip(names, values, strict=True):
                _check_version(value)
                self._remember(name, value)
        self._read_up_to = end_offset
        self._newest = Producer(REQUESTS_TOPIC, epoch, sequence)

    def _remember(self, name: bytes, value: bytes) -> None:
        self._known_bytes += len(value) - len(self._known.pop(name, b""))
        self._known[name] = value
        while len(self._known) > MAX_KNOWN or self._known_bytes > MAX_KNOWN_BYTES:
            _, oldest = self._known.popitem(last=False)
            self._known_bytes -= len(oldest)

    def _look_for(self, entry: dict[str, Any]) -> list[list[int]]:
        """Return where the records of a request are, found by their content. PositionLost."""
        found: list[list[int]] = []
        extents = self._log.extents(entry["topic"])
        for number, offset, count, first, whole in entry["shares"]:
            place = Partition(entry["topic"], number)
            first_offset, end_offset = extents.get(place, (0, 0))
            start = max(offset, first_offset)
            end = min(end_offset, offset + count + _LOOKED_RECORDS)
            batches = list(self._log.read(Range(place, start, end))) if start < end else []
            offsets = _find_share(batches, count, first, whole)
            if offsets is None:
                raise PositionLost(
                    f"{place}@{offset}: this request was carried out before, but its records are "
                    f"not in the log any more. Nothing was appended now; do not send it again."
                )
            found += _runs(number, offsets)
        return found


def _encode(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode()


def _check_version(value: bytes) -> None:
    if not value.startswith(b'{"version":1,'):
        raise LogError(
            f"{REQUESTS_TOPIC}: a record begins with {value[:20]!r}, this Headrace reads version "
            f"{VERSION}. Use the Headrace that wrote it, or a newer one."
        )


def _hash(content: bytes, *, size: int = _DIGEST_BYTES) -> bytes:
    return hashlib.blake2b(content, digest_size=size).digest()


def _digests(rows: pa.RecordBatch) -> tuple[str, str]:
    keys, values = rows.column("key").to_pylist(), rows.column("value").to_pylist()
    return _digest(keys[:1], values[:1]), _digest(keys, values)


def _digest(keys: list[bytes | None], values: list[bytes | None]) -> str:
    both = [*keys, *values]
    lengths = array("q", [-1 if each is None else len(each) for each in both])
    content = lengths.tobytes() + b"".join([each or b"" for each in both])
    return _hash(content, size=_SHARE_DIGEST_BYTES).hex()


def _find_share(
    batches: Sequence[pa.RecordBatch], count: int, first: str, whole: str
) -> list[int] | None:
    """Return the offsets of the records with these digests."""
    if not batches:
        return None
    table = pa.Table.from_batches(batches)
    keys, values = table.column("key").to_pylist(), table.column("value").to_pylist()
    for at in range(len(keys) - count + 1):
        end = at + count
        if (
            _digest(keys[at : at + 1], values[at : at + 1]) == first
            and _digest(keys[at:end], values[at:end]) == whole
        ):
            offsets: list[int] = table.column("offset").slice(at, count).to_pylist()
            return offsets
    return None


def _runs(number: int, offsets: list[int]) -> list[list[int]]:
    """Return offsets as ranges of one partition."""
    runs: list[list[int]] = []
    for offset in offsets:
        if runs and runs[-1][2] == offset:
            runs[-1][2] += 1
        else:
            runs.append([number, offset, offset + 1])
    return runs
