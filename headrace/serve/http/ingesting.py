"""Bodies of appends: read in bounds, decoded and appended in a few threads.

The event loop only receives bytes. At most MAX_HELD_BYTES of bodies are in memory, and THREADS of
them are decoded or wait for a sync; together they share it (ingest/appending.py).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from anyio.to_thread import run_sync
from fastapi import Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from headrace.errors import UsageError
from headrace.serve.http.errors import Refused
from headrace.serve.http.values import ARROW
from headrace.serve.ingest.appending import Ingest
from headrace.serve.ingest.decoding import Body, Kind, decode
from headrace.serve.ingest.requests import Done
from headrace.serve.ingest.requests import Request as NamedRequest

__all__ = ["KINDS", "MAX_HELD_BYTES", "THREADS", "Ingesting", "body_kind"]

THREADS = 16
MAX_HELD_BYTES = 64 << 20
KINDS = {
    "application/json": Kind.JSON,
    "application/x-ndjson": Kind.LINES,
    "application/jsonl": Kind.LINES,
    ARROW: Kind.ARROW,
}
_VISIBLE = re.compile(r"[\x21-\x7e]+")


def body_kind(headers: Headers) -> Kind:
    """Return what a body is written in. Refused: another type, or an encoding."""
    given = headers.get("content-type", "")
    name, _, parameters = given.partition(";")
    kind = KINDS.get(name.strip().lower())
    charset = re.search(r"charset\s*=\s*\"?([^\s;\"]+)", parameters, re.IGNORECASE)
    if kind is None or (charset and charset[1].lower() not in ("utf-8", "utf8")):
        raise Refused(
            415,
            "UsageError",
            f"a body of type {given[:100] or 'nothing'!r} is not taken here; send one of "
            f"{', '.join(KINDS)}, as UTF-8, and say so in Content-Type",
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "UsageError", "a compressed body is not taken here; send it as it is")
    return kind


class Ingesting:
    """Takes the bodies of appends."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self._held_bytes = 0
        self._limiter = anyio.CapacityLimiter(THREADS)

    async def append(
        self,
        request: Request,
        topic: str,
        kind: Kind,
        *,
        key: str | None,
        partition: int | None,
        envelope: bool,
        deletes: bool,
        idempotency_key: str | None,
    ) -> Done:
        """Read a request's body and append it. Refused, and what `Ingest.append` raises."""
        if idempotency_key is not None and not _VISIBLE.fullmatch(idempotency_key):
            raise UsageError("an Idempotency-Key has letters, digits and other visible ASCII only")
        with self._holding() as held:
            content = await held.read(request)

            def work() -> Done:
                self._ingest.check(topic)
                named = None
                if idempotency_key is not None:
                    parameters = [kind.value, key, partition, envelope]
                    # What was sent without it has the digest that it had before.
                    how = repr((*parameters, *(["delete"] if deletes else []))).encode()
                    named = NamedRequest.of(topic, idempotency_key, [how, content])
                sent = decode(Body(content, kind, envelope, deletes))
                return self._ingest.append(topic, sent, key=key, partition=partition, request=named)

            return await run_sync(work, limiter=self._limiter)

    @contextmanager
    def _holding(self) -> Iterator["_Held"]:
        held = _Held(self)
        try:
            yield held
        finally:
            self._held_bytes -= held.size

    def take(self, size: int) -> None:
        """Make room for bytes. Refused: there is none."""
        if self._held_bytes + size > MAX_HELD_BYTES:
            raise Refused(
                429,
                "EngineBusy",
                f"the engine holds {MAX_HELD_BYTES >> 20} MB of bodies already, which is the most; "
                f"send this one again in a moment",
                headers={"Retry-After": "1"},
            )
        self._held_bytes += size


class _Held:
    """What one request has in memory."""

    def __init__(self, ingesting: Ingesting) -> None:
        self._ingesting = ingesting
        self.size = 0

    async def read(self, request: Request) -> bytes:
        chunks: list[bytes] = []
        try:
            async for chunk in request.stream():
                self._ingesting.take(len(chunk))
                self.size += len(chunk)
                chunks.append(chunk)
        except ClientDisconnect as error:
            text = "the body ended before all of it was there; nothing was appended"
            raise Refused(400, "UsageError", text) from error
        return b"".join(chunks)
