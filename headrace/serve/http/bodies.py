"""Bound what a request sends: its body's size, and how long that may take.

It stands between the guard and the routes, so that no route can read more by mistake.
"""

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.serve.http.errors import Refused
from headrace.serve.http.guard import is_granted

__all__ = [
    "BODY_SECONDS",
    "MAX_APPEND_BYTES",
    "MAX_BODY_BYTES",
    "OPEN_BODY_SECONDS",
    "BoundedBodies",
]

MAX_BODY_BYTES = 1 << 20
MAX_APPEND_BYTES = 8 << 20
BODY_SECONDS = 30.0
OPEN_BODY_SECONDS = 5.0  # of who has no permission: a login is short
_APPENDS = "/v1/topics/"


class BoundedBodies:
    """Refuses a body over the limit with 413 as soon as it is, and one that is slow with 408."""

    def __init__(self, app: ASGIApp, *, max_append_bytes: int = MAX_APPEND_BYTES) -> None:
        self._app = app
        self._max_append_bytes = max_append_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on; its body is counted as it comes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        appends = scope["path"].startswith(_APPENDS)
        max_bytes = self._max_append_bytes if appends else MAX_BODY_BYTES
        seconds = BODY_SECONDS if is_granted(scope) else OPEN_BODY_SECONDS
        await self._app(scope, _bounded(receive, max_bytes, seconds), send)


def _bounded(receive: Receive, max_bytes: int, seconds: float) -> Receive:
    received, ended = 0, False
    deadline = time.monotonic() + seconds

    async def receive_bounded() -> Message:
        nonlocal received, ended
        if ended:
            return await receive()  # what is left is that the asker hangs up
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                message = await receive()
        except TimeoutError as error:
            text = "the request's body did not arrive in time; send it again"
            raise Refused(408, "UsageError", text) from error
        received += len(message.get("body", b""))
        ended = not message.get("more_body", False)
        if received > max_bytes:
            raise Refused(413, "UsageError", f"a request has at most {max_bytes} bytes")
        return message

    return receive_bounded
