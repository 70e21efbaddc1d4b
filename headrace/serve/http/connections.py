"""Connections that send no request are closed, so that they take nobody's place.

Promises:
- A connection that has not sent the whole head of a request HEAD_SECONDS after it was opened, or
  after its last request was answered, is closed. What it sends in between gives it no more time.
- At most MAX_WAITING connections wait like that: one more closes the one that waited longest. A
  client that asks at once is served, however many others only hold a connection open.
- One that does not take what it is sent can be dropped (`drop_of`): it is told why, should it read
  again within DROP_SECONDS, and is closed then whether it did or not.
Requests under way are bounded elsewhere (`guard.py`), once it is known who asks.
"""

import asyncio
from collections.abc import Callable
from typing import ClassVar

import h11
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

__all__ = [
    "HEAD_SECONDS",
    "MAX_WAITING",
    "Connection",
    "Drop",
    "Socket",
    "connection_class",
    "drop_of",
]

HEAD_SECONDS = 5.0
MAX_WAITING = 256
DROP_SECONDS = 5.0

#: Ends a connection that takes nothing: the last text it is sent, and how a WebSocket is closed.
Drop = Callable[[str, int, str], None]
_DROP = "headrace.drop"


def drop_of(scope: Scope) -> Drop:
    """Return what drops the connection of a request or a WebSocket."""
    found: Drop = scope[_DROP]
    return found


class Connection(H11Protocol):
    """One connection; a server's own class has its bounds and the connections that wait."""

    head_seconds: ClassVar[float]
    max_waiting: ClassVar[int]
    waiting: ClassVar[dict["Connection", None]]  # in the order they began to wait
    _expires: asyncio.TimerHandle | None = None
    _upgraded = False  # it is a WebSocket now
    _cut: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Take what was sent; a request that is whole is waited for no more."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_request()
        else:
            self._stop_waiting()

    def handle_events(self) -> None:
        """Let requests that have come be answered, which they are after this has returned."""
        super().handle_events()
        if self.scope is not None:
            self.scope[_DROP] = self._drop  # type: ignore[literal-required]

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
        if self._cut is not None:
            self._cut.cancel()
        super().connection_lost(exc)

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

    def _drop(self, last: str, _code: int, _reason: str) -> None:
        if not self.transport.is_closing():
            # Past what is waiting to be sent: whoever awaits that it is would wait for good.
            for event in (h11.Data(data=last.encode()), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.cycle.response_complete = True
            self.cycle.keep_alive = False
        self._cut = _close(self.loop, self.transport)

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.abort()


class Socket(WebSocketsSansIOProtocol):
    """One WebSocket."""

    _cut: asyncio.TimerHandle | None = None

    def handle_connect(self, event: Request) -> None:
        """Let a WebSocket be answered, which it is after this has returned."""
        super().handle_connect(event)
        self.scope[_DROP] = self._drop  # type: ignore[literal-required]

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._cut is not None:
            self._cut.cancel()
        super().connection_lost(exc)

    def _drop(self, last: str, code: int, reason: str) -> None:
        if not self.transport.is_closing() and not self.close_sent:
            self.conn.send_text(last.encode())
            self.conn.send_close(code, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self._cut = _close(self.loop, self.transport)


def _close(loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> asyncio.TimerHandle:
    """Close a connection once all is sent; what is returned does so after a while."""
    transport.close()
    return loop.call_later(DROP_SECONDS, transport.abort)


def connection_class(
    *, head_seconds: float = HEAD_SECONDS, max_waiting: int = MAX_WAITING
) -> type[Connection]:
    """Return the class of one server's connections."""
    bounds = {"head_seconds": head_seconds, "max_waiting": max_waiting, "waiting": {}}
    return type("ServedConnection", (Connection,), bounds)
