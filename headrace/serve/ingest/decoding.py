"""What a producer sent, as records of a log: JSON, JSON lines or Arrow.

A body of 8 MB takes up to 90 MB while it is decoded, and more threads are no faster, because Python
runs one of them at a time. So MAX_DECODING bodies are decoded at once, and others wait in bytes.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from headrace.errors import UsageError
from headrace.log.base import APPENDS, HEADERS
from headrace.serve.ingest.arrow import read_body
from headrace.serve.ingest.cutting import Cut, cut_json, cut_lines
from headrace.serve.ingest.enveloped import open_envelopes

__all__ = ["MAX_DECODING", "Body", "Kind", "Sent", "decode"]

MAX_DECODING = 2
_decoding = threading.BoundedSemaphore(MAX_DECODING)
#: Size of the envelopes that are opened together: a header takes 40 times its text in Python.
_OPENED_BYTES = 1 << 18


class Kind(Enum):
    """What a body is written in."""

    JSON = "JSON"
    LINES = "JSON lines"
    ARROW = "Arrow"


@dataclass(frozen=True)
class Body:
    """What was sent: bytes, what they are written in, and whether each record is in an envelope.

    With `deletes` each record is a primary key, whose row is deleted.
    """

    content: bytes
    kind: Kind
    enveloped: bool = False
    deletes: bool = False


@dataclass(frozen=True)
class Sent:
    """The records of a body. `keyed` tells of each whether its key was sent; None: of none.

    `gone` tells which are keys whose rows are deleted; None: none is.
    """

    records: pa.RecordBatch  # of APPENDS
    keyed: pa.Array | None = None
    gone: pa.Array | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether all keys were sent, so that none has to be read."""
        return self.keyed is not None and self.keyed.true_count == len(self.keyed)


def decode(body: Body) -> Sent:
    """Return the records of a body, of which there is at least one. UsageError, RecordTooLarge."""
    with _decoding:
        sent = _decode(body)
    if sent.records.num_rows == 0:
        raise UsageError(f"the body has no record; send at least one as {body.kind.value}")
    return sent


def _decode(body: Body) -> Sent:
    if body.deletes and (body.enveloped or body.kind is Kind.ARROW):
        raise UsageError(
            'delete=true takes rows as JSON; in an envelope write "delete": true, and in Arrow a '
            "value that is null"
        )
    if body.kind is Kind.ARROW:
        if body.enveloped:
            raise UsageError(
                "Arrow takes no envelopes: send columns named key, value and headers, and leave "
                "out envelope=true"
            )
        records, names_keys = read_body(body.content)
        keyed = pa.repeat(pa.scalar(True), records.num_rows) if names_keys else None
        return Sent(records, keyed)
    cut = cut_lines(body.content) if body.kind is Kind.LINES else cut_json(body.content)
    if body.enveloped:
        return _opened(cut)
    gone = pa.repeat(pa.scalar(True), len(cut.texts)) if body.deletes else None
    return Sent(_batch(cut.texts), gone=gone)


def _batch(values: list[bytes]) -> pa.RecordBatch:
    count = len(values)
    columns = [pa.nulls(count, pa.binary()), pa.array(values, pa.binary())]
    return pa.RecordBatch.from_arrays([*columns, pa.nulls(count, HEADERS)], schema=APPENDS)


def _opened(cut: Cut) -> Sent:
    batches: list[pa.RecordBatch] = []
    keyed: list[bool] = []
    gone: list[bool] = []
    for part in _parts(cut):
        opened = open_envelopes(part)
        keyed += opened.keyed
        gone += opened.gone
        columns = [pa.array(opened.keys, pa.binary()), pa.array(opened.values, pa.binary())]
        headers = pa.array(opened.headers, HEADERS)
        batches.append(pa.RecordBatch.from_arrays([*columns, headers], schema=APPENDS))
    flags = pa.array(gone, pa.bool_()) if any(gone) else None
    return Sent(pa.concat_batches(batches), pa.array(keyed, pa.bool_()), flags)


def _parts(cut: Cut) -> Iterator[Cut]:
    """Yield the records a few at a time; one part at least."""
    start = size = 0
    for at, text in enumerate(cut.texts):
        if size > _OPENED_BYTES:
            yield Cut(cut.texts[start:at], cut.numbers[start:at], cut.noun)
            start, size = at, 0
        size += len(text)
    yield Cut(cut.texts[start:], cut.numbers[start:], cut.noun)
