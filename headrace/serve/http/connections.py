"""Connections that send no request are closed, so that they take nobody's place.

Promises:
- A connection that has not sent the whole head of a request HEAD_SECONDS after it was opened, or
  after its last request was answered, is closed. What it sends in between gives it no more time.
- At most MAX_WAITING connections wait like that: one more closes the one that waited longest. A
  client that asks at once is served, however many others only hold a connection open.
Requests under way are bounded elsewhere (`guard.py`), once it is known who asks.

An answer that stays open may end with `drop_connection`: the asker does not take what is sent. What
waits to be sent to it is given up after LAST_SECONDS.
"""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

__all__ = [
    "HEAD_SECONDS",
    "MAX_WAITING",
    "Connection",
    "WebSocketConnection",
    "connection_class",
    "drop_connection",
]

HEAD_SECONDS = 5.0
MAX_WAITING = 256
LAST_SECONDS = 5.0

_DROP = "headrace.drop"


def drop_connection(scope: Scope, last: bytes, code: int) -> None:
    """Send a last message without waiting for it, and close: for a WebSocket with a code."""
    drop: Callable[[bytes, int], None] | None = scope.get(_DROP)
    if drop is not None:  # of another server, as tests have
        drop(last, code)


def _close_soon(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
    transport.close()
    loop.call_later(LAST_SECONDS, transport.abort)


class Connection(H11Protocol):
    """One connection; a server's own class has its bounds and the connections that wait."""

    head_seconds: ClassVar[float]
    max_waiting: ClassVar[int]
    waiting: ClassVar[dict["Connection", None]]  # in the order they began to wait
    _expires: asyncio.TimerHandle | None = None
    _upgraded = False  # it is a WebSocket now

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.app = _Dropping(self.app, self._drop)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Take what was sent; a request that is whole is waited for no more."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_request()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        # The next request may have been sent along with the last one.
        if self.cycle.response_complete and not self.transport.is_closing():
            self._await_request()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over; it is no longer one that waits."""
        self._upgraded = True
        self._stop_waiting()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _drop(self, last: bytes, _: int) -> None:
        """End the answer under way with its last bytes."""
        if not self.transport.is_closing():
            self.transport.write(self.conn.send(h11.Data(data=last)) or b"")
            _close_soon(self.transport, self.loop)

    def _await_request(self) -> None:
        """Begin to wait, unless this connection does already."""
        if self._upgraded or self._expires is not None:
            return
        self._expires = self.loop.call_later(self.head_seconds, self._give_up)
        self.waiting[self] = None
        if len(self.waiting) > self.max_waiting:
            next(iter(self.waiting))._give_up()

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._expires is not None:
            self._expires.cancel()
            self._expires = None

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.abort()


class _Dropping:
    """An app whose requests can be dropped."""

    def __init__(self, app: Any, drop: Callable[[bytes, int], None]) -> None:
        self._app = app
        self._drop = drop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_DROP] = self._drop
        await self._app(scope, receive, send)


class WebSocketConnection(WebSocketsSansIOProtocol):
    """A connection after it became a WebSocket."""

    async def run_asgi(self) -> None:
        """Answer, and let the answer be dropped."""
        self.app = _Dropping(self.app, self._drop)
        await super().run_asgi()

    def _drop(self, last: bytes, code: int) -> None:
        if not self.transport.is_closing() and not self.close_sent:
            self.conn.send_text(last)
            self.conn.send_close(code)
            self.close_sent = True
            self.transport.write(b"".join(self.conn.data_to_send()))
            _close_soon(self.transport, self.loop)


def connection_class(
    *, head_seconds: float = HEAD_SECONDS, max_waiting: int = MAX_WAITING
) -> type[Connection]:
    """Return the class of one server's connections."""
    bounds = {"head_seconds": head_seconds, "max_waiting": max_waiting, "waiting": {}}
    return type("ServedConnection", (Connection,), bounds)
