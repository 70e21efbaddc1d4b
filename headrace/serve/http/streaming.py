"""Answers that stay open: messages as events of a server (SSE) or by WebSocket.

Promises:
- They end when the messages do, when the client hangs up or sends what it should not, when its
  permission ends, and when the server stops: SSE at the end of an event, a WebSocket with code
  1012.
- Messages that come together are sent in one write.
- A client that has taken nothing for `send_seconds` is told `TooSlow` and dropped.
- What ends the messages early is told as a last one: `{"type": "error", "error", "message"}`. A
  WebSocket is closed with 4000 and the status of HTTP, or with 1011 where that is 500 or more.
- What is refused before the first message is answered as for any request, with a status.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from typing import Any, NamedTuple

from fastapi import WebSocket, WebSocketDisconnect
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.errors import HeadraceError, QueryRefused, TokenRefused, TooSlow, UsageError
from headrace.serve.http.connections import drop_of, sending_texts
from headrace.serve.http.errors import Refused, status_of
from headrace.serve.http.guard import may_follow, permission_ends
from headrace.serve.http.refusing import close_reason
from headrace.serve.http.room import stays_open
from headrace.serve.http.stopping import stopping_of
from headrace.serve.message import Message, error_message

__all__ = ["EVENTS", "EventStream", "Opening", "send_to_socket"]

EVENTS = "text/event-stream"
#: Codes of WebSocket.
_ENDS, _FAILS, _STOPS = 1000, 1011, 1012
#: What is not closed with 4000 and its status: a token that is too old (410) is closed as one that
#: is refused for another reason, and a view with too many rows (400) as what is too large.
_CODES: Mapping[type[HeadraceError], int] = {TokenRefused: 4409, QueryRefused: 4413}

#: Begins messages, and lets go of what they needed when it is left. Raises why they are refused.
Opening = AbstractAsyncContextManager[AsyncGenerator[Sequence[Message]]]


class _Ending(NamedTuple):
    """The last message, if there is one, and how a WebSocket is closed."""

    last: Message | None
    code: int
    reason: str


class EventStream(Response):
    """Messages as events."""

    media_type = EVENTS

    def __init__(self, opening: Opening, *, send_seconds: float) -> None:
        # A proxy is to hand events on at once (nginx: X-Accel-Buffering).
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._opening = opening
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages. Raises what the opening does, before anything is sent."""
        async with self._opening as messages:
            stays_open(scope)
            start = {"status": self.status_code, "headers": self.raw_headers}
            await send({"type": "http.response.start", **start})
            await _send_all(_EventClient(scope, receive, send, self._send_seconds), messages)


async def send_to_socket(websocket: WebSocket, opening: Opening, *, send_seconds: float) -> None:
    """Accept a WebSocket and send it messages, if it may read; else tell it why not."""
    if not await may_follow(websocket):
        return
    client = _SocketClient(websocket, send_seconds)
    with suppress(WebSocketDisconnect):
        try:
            async with opening as messages:
                await _send_all(client, messages)
        except (HeadraceError, Refused) as error:
            await _end(client, _told(error))


class _EventClient:
    """A client of SSE. TimeoutError: it takes nothing for so many seconds."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, send_seconds: float) -> None:
        self.scope = scope
        self.send_seconds = send_seconds
        self._receive = receive
        self._send = send

    async def send(self, messages: Sequence[Message], *, more: bool = True) -> None:
        events = b"".join([each.event for each in messages])
        async with asyncio.timeout(self.send_seconds):
            await self._send({"type": "http.response.body", "body": events, "more_body": more})

    async def leaves(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def end(self, ending: _Ending) -> None:
        await self.send([] if ending.last is None else [ending.last], more=False)


class _SocketClient:
    """A client by WebSocket. TimeoutError: it takes nothing for so many seconds."""

    def __init__(self, websocket: WebSocket, send_seconds: float) -> None:
        self.scope = websocket.scope
        self.send_seconds = send_seconds
        self._websocket = websocket
        self._send_texts = sending_texts(websocket.scope)

    async def send(self, messages: Sequence[Message]) -> None:
        await self._send_texts([each.data for each in messages], self.send_seconds)

    async def leaves(self) -> None:
        if (await self._websocket.receive())["type"] != "websocket.disconnect":
            raise UsageError("this connection takes no messages from its client; ask by HTTP")

    async def end(self, ending: _Ending) -> None:
        if ending.last is not None:
            await self.send([ending.last])
        with suppress(RuntimeError):  # it was closed meanwhile, for what the client sent
            async with asyncio.timeout(self.send_seconds):
                await self._websocket.close(ending.code, ending.reason)


async def _send_all(
    client: _EventClient | _SocketClient, messages: AsyncGenerator[Sequence[Message]]
) -> None:
    """Send messages until something ends them; tell the client what it was, if it is there."""

    async def send() -> _Ending | None:
        async with aclosing(messages):
            async for together in messages:
                try:
                    if together:
                        await client.send(together)
                except TimeoutError:
                    text = f"the connection took no bytes for {client.send_seconds:g} seconds"
                    slow = TooSlow(f"{text}; read faster, and go on after the last token")
                    _drop(client.scope, _told(slow))
                    return None
                # A send that finds room does not wait: let others in, who left among them.
                await asyncio.sleep(0)
        return _Ending(None, _ENDS, "")

    async def loses_permission() -> None:
        raise await permission_ends(client.scope)

    async def stops() -> _Ending:
        await stopping_of(client.scope["app"]).wait()
        return _Ending(None, _STOPS, "the engine stops; ask again when it is back")

    try:
        ending = await _first_of(send(), client.leaves(), loses_permission(), stops())
    except (HeadraceError, Refused) as error:
        ending = _told(error)
    if ending is not None:
        await _end(client, ending)


async def _end(client: _EventClient | _SocketClient, ending: _Ending) -> None:
    try:
        await client.end(ending)
    except TimeoutError:
        _drop(client.scope, ending)


def _drop(scope: Scope, ending: _Ending) -> None:
    last = b""
    if ending.last is not None:
        last = ending.last.event if scope["type"] == "http" else ending.last.data
    drop_of(scope)(last, ending.code, ending.reason)


async def _first_of(*works: Coroutine[Any, Any, _Ending | None]) -> _Ending | None:
    """Return what the first of several gives, or raise what it raises; the others are ended."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _told(error: HeadraceError | Refused) -> _Ending:
    if isinstance(error, Refused):
        name, text, status = error.error, error.message, error.status_code
    else:
        name, text, status = type(error).__name__, str(error), status_of(error)
    code = 4000 + status if status < 500 else _FAILS
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), code)
    return _Ending(error_message(name, text), code, close_reason(text))
