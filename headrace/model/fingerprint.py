"""Fingerprints: equal when the answer is the same, so that an edited comment rebuilds nothing.

Promises:
- A fingerprint covers all that a definition's canonical form says about the answer, and what the
  engine adds to it (time zone, ANSI mode, the version of the semantics); never comments, white
  space, places in a file, the name of the definition itself, the key hint, which only producers
  use, what decides when markers are written (they are in the log then), or when sinks are told.
  A view's covers the names of its streams: a renamed stream is read from its start.
- It is stable between processes, machines and releases of the libraries: sha256 over JSON with
  sorted keys, and no word of it is another library's.
"""

import hashlib
import json
from typing import Any

from headrace.model.canonical import to_canonical
from headrace.model.definitions import Stream, View
from headrace.model.graph import streams_of

__all__ = ["SEMANTICS", "stream_fingerprint", "view_fingerprint"]

#: Raised when the same definition over the same log would get another answer from newer code.
SEMANTICS = 3

_STREAM_SILENT = ("name", "key", "idle_timeout_us", "may_lose_rows")
_VIEW_SILENT = ("name", "emit", "emit_every_us", "changes")


def stream_fingerprint(stream: Stream) -> str:
    """Return the fingerprint of what a stream reads, as 64 hexadecimal digits."""
    form = _without(to_canonical(stream)["stream"], _STREAM_SILENT)
    # How a delay is learnt decides what markers say; that it is learnt decides who obeys them.
    return _digest({"stream": form | {"adaptive": stream.adaptive is not None}})


def view_fingerprint(view: View, *streams: Stream) -> str:
    """Return the fingerprint of a view over the streams that it reads, as 64 hexadecimal digits."""
    by_name = {stream.name: stream for stream in streams}
    form = _without(to_canonical(view)["view"], _VIEW_SILENT)
    # By name too: a renamed stream is another one to the ledger, read from its start.
    read = {name: stream_fingerprint(by_name[name]) for name in streams_of(view.query)}
    return _digest({"view": form, "streams": read})


def _without(form: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in form.items() if name not in names}


def _digest(said: dict[str, Any]) -> str:
    whole = {"semantics": SEMANTICS, "time_zone": "UTC", "ansi": True, **said}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
