"""Fingerprints: equal when the answer is the same, so that an edited comment rebuilds nothing.

Promises:
- A fingerprint covers all that a definition says about the answer, and what the engine adds to
  it (time zone, ANSI mode, the version of the semantics); never comments, white space, places in
  a file, names of streams and views, the key hint, which only producers use, what decides when
  markers are written (they are in the log then), or when sinks are told.
- It is stable between processes and machines: sha256 over JSON with sorted keys.
"""

import hashlib
import json

from headrace.model.definitions import Stream, View
from headrace.model.graph import streams_of

__all__ = ["SEMANTICS", "stream_fingerprint", "view_fingerprint"]

#: Raised when the same definition over the same log would get another answer from newer code.
SEMANTICS = 3


def stream_fingerprint(stream: Stream) -> str:
    """Return the fingerprint of what a stream reads, as 64 hexadecimal digits."""
    return _digest(
        {
            "semantics": SEMANTICS,
            "columns": [[each.name, each.type.sql, each.nullable] for each in stream.columns],
            "topic": stream.topic,
            "format": stream.format,
            "timestamp_format": stream.timestamp_format,
            "event_time": stream.event_time,
            "delay_us": stream.delay_us,
            "adaptive": stream.adaptive is not None,
            "unique": [stream.unique, stream.unique_within_us, stream.duplicates],
        }
    )


def view_fingerprint(view: View, *streams: Stream) -> str:
    """Return the fingerprint of a view over its streams, as 64 hexadecimal digits."""
    assert streams_of(view.query) == tuple(stream.name for stream in streams)
    return _digest(
        {
            "semantics": SEMANTICS,
            # By name too: a renamed stream is another one to the ledger, read from its start.
            "streams": [[stream.name, stream_fingerprint(stream)] for stream in streams],
            "query": repr(view.query),
            "allowed_lateness_us": view.allowed_lateness_us,
            "late": view.late,
            "retention_us": view.retention_us,
            "time_zone": "UTC",
            "ansi": True,
        }
    )


def _digest(canonical: dict[str, object]) -> str:
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
