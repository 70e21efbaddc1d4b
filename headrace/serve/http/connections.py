"""Connections that send no request, or take no answer, are closed: they take nobody's place.

Promises:
- A connection that has not sent the whole head of a request HEAD_SECONDS after it was opened, or
  after it took the answer to its last one, is closed. What it sends in between gives it no more
  time.
- At most MAX_WAITING connections wait like that: one more closes the one that waited longest. A
  client that asks at once is served, however many others only hold a connection open.
- A head has at most MAX_HEAD_BYTES, and so have fields that follow a body. A connection that sends
  more is closed.
- One that takes fewer than MIN_TAKEN_BYTES of an answer in SEND_SECONDS is closed, however the
  answer is made. Until an answer is taken, but for what a socket holds, its request is under way.
- One that does not take what it is sent can be dropped (`drop_of`): it is told why, should it read
  again within DROP_SECONDS, and is closed then whether it did or not.
Requests under way are bounded elsewhere (`guard.py`), once it is known who asks.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from starlette.types import Scope
from starlette.websockets import WebSocketDisconnect
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Request

__all__ = [
    "HEAD_SECONDS",
    "MAX_HEAD_BYTES",
    "MAX_WAITING",
    "Connection",
    "Drop",
    "Socket",
    "connection_class",
    "drop_of",
    "sending_texts",
    "taken",
]

HEAD_SECONDS = 5.0
MAX_HEAD_BYTES = 64 << 10
MAX_WAITING = 256
# Longer than what sends message after message waits for each, and then for a connection it drops.
SEND_SECONDS = 20.0
MIN_TAKEN_BYTES = 16 << 10
DROP_SECONDS = 5.0

#: Ends a connection that takes nothing: the last bytes it is sent, if any, and how a WebSocket is
#: closed.
Drop = Callable[[bytes, int, str], None]
_DROP = "headrace.drop"
#: Sends texts to a WebSocket, each as a frame. TimeoutError: it takes nothing for so many seconds.
SendTexts = Callable[[Sequence[bytes], float], Awaitable[None]]
_SEND_TEXTS = "headrace.send_texts"
_TAKEN = "headrace.taken"


def drop_of(scope: Scope) -> Drop:
    """Return what drops the connection of a request or a WebSocket."""
    found: Drop = scope[_DROP]
    return found


async def taken(scope: Scope) -> None:
    """Return when the client has taken all but what a socket holds of its answer, or is gone."""
    wait: Callable[[], Awaitable[None]] = scope[_TAKEN]
    await wait()


def sending_texts(scope: Scope) -> SendTexts:
    """Return what sends to a WebSocket that was accepted: all of it in one write.

    With ASGI's own `send`, each text would take a timer and a write of its own.
    """
    found: SendTexts = scope[_SEND_TEXTS]
    return found


class Connection(HttpToolsProtocol):
    """One connection; a server's own class has its bounds and the connections that wait."""

    head_seconds: ClassVar[float]
    max_waiting: ClassVar[int]
    send_seconds: ClassVar[float]
    waiting: ClassVar[dict["Connection", None]]  # in the order they began to wait
    _expires: asyncio.TimerHandle | None = None
    _upgraded = False  # it is a WebSocket now
    _cut: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None  # while more is to be sent than a socket holds
    _has_advanced = False  # what was received last ended a head, or belongs to a body
    _head_bytes = 0  # received since then, of a head or of what may follow a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._cycles: deque[RequestResponseCycle] = deque()  # requests that are not answered yet
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Take what was sent; a request that is whole is waited for no more."""
        self._has_advanced = False
        super().data_received(data)
        if self._upgraded:
            return
        if self._cycles:
            self._stop_waiting()
        else:
            self._await_request()
        self._head_bytes = 0 if self._has_advanced else self._head_bytes + len(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            if self._cycles:
                self._give_up()
            else:
                self.send_400_response(f"The head of a request has {MAX_HEAD_BYTES} bytes at most.")

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope[_DROP] = self._drop  # type: ignore[literal-required]
        self.scope[_TAKEN] = self.flow.drain  # type: ignore[literal-required]

    def on_headers_complete(self) -> None:
        """Let a request be answered whose head has come."""
        self._has_advanced = True
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:  # else it is to be a WebSocket
            self._cycles.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._has_advanced = True
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._cycles.popleft()
        # The next request may have been sent along with the last one.
        if not self._cycles and not self.transport.is_closing() and self._sending is None:
            self._await_request()

    def pause_writing(self) -> None:
        """Begin to look whether the client takes what it is sent."""
        super().pause_writing()
        self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop looking: the client has taken most of it."""
        super().resume_writing()
        self._stop_looking()
        if not self._cycles and not self.transport.is_closing():
            self._await_request()

    def _look_again(self, unsent: int) -> None:
        self._sending = self.loop.call_later(self.send_seconds, self._look, unsent)

    def _look(self, unsent_before: int) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent > unsent_before - MIN_TAKEN_BYTES:
            self._give_up()
        else:
            self._look_again(unsent)

    def _stop_looking(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over; it is no longer one that waits."""
        self._upgraded = True
        self._stop_waiting()
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        self._stop_looking()
        if self._cut is not None:
            self._cut.cancel()
        # Whoever sends a request while another is answered is gone for both of them.
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()
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

    def _drop(self, last: bytes, _code: int, _reason: str) -> None:
        if not self.transport.is_closing():
            # Past what is waiting to be sent: whoever awaits that it is would wait for good.
            chunk = b"%x\r\n%b\r\n" % (len(last), last) if last else b""
            self.transport.write(chunk + b"0\r\n\r\n")
            self._cycles[0].response_complete = True
            self._cycles[0].keep_alive = False
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
        self.scope[_SEND_TEXTS] = self._send_texts  # type: ignore[literal-required]

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._cut is not None:
            self._cut.cancel()
        super().connection_lost(exc)

    async def _send_texts(self, texts: Sequence[bytes], seconds: float) -> None:
        if not self.writable.is_set():
            async with asyncio.timeout(seconds):
                await self.writable.wait()
        if self.close_sent or self.transport.is_closing():
            raise WebSocketDisconnect(1006)
        frames = [Frame(Opcode.TEXT, text).serialize(mask=False) for text in texts]
        self.transport.write(b"".join(frames))

    def _drop(self, last: bytes, code: int, reason: str) -> None:
        if not self.transport.is_closing() and not self.close_sent:
            if last:
                self.conn.send_text(last)
            self.conn.send_close(code, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
        self._cut = _close(self.loop, self.transport)


def _close(loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> asyncio.TimerHandle:
    """Close a connection once all is sent; what is returned does so after a while."""
    transport.close()
    return loop.call_later(DROP_SECONDS, transport.abort)


def connection_class(
    *,
    head_seconds: float = HEAD_SECONDS,
    max_waiting: int = MAX_WAITING,
    send_seconds: float = SEND_SECONDS,
) -> type[Connection]:
    """Return the class of one server's connections."""
    bounds = {
        "head_seconds": head_seconds,
        "max_waiting": max_waiting,
        "send_seconds": send_seconds,
        "waiting": {},
    }
    return type("ServedConnection", (Connection,), bounds)
