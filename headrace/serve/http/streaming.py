"""Answers that stay open: messages as events of a server (SSE) or by WebSocket.

Promises:
- They end when the messages do, when the client hangs up or sends what it should not, when its
  permission ends, and when the server stops: SSE at the end of an event, a WebSocket with code
  1012.
- A client that has not taken a message after `send_seconds` is told `TooSlow` and dropped.
- What ends the messages early is told as a last one: `{"type": "error", "error", "message"}`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from contextlib import AbstractContextManager, aclosing, suppress
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.errors import HeadraceError
from headrace.serve.http.connections import drop_of
from headrace.serve.http.errors import Refused, status_of
from headrace.serve.http.guard import permission_ends
from headrace.serve.http.stopping import Stopping
from headrace.serve.message import Message, error_message

__all__ = ["EVENTS", "EventStream", "refuse_socket", "send_to_socket"]

EVENTS = "text/event-stream"
STOPS = 1012
NOT_TAKEN = 4408
NOT_OURS = 4400


class EventStream(Response):
    """Messages as events; `place` is given back when they end."""

    media_type = EVENTS

    def __init__(
        self,
        messages: AsyncGenerator[Message],
        *,
        place: AbstractContextManager[None],
        stopping: Stopping,
        send_seconds: float,
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]
        self._messages = messages
        self._place = place
        self._stopping = stopping
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages."""

        async def send_event(event: bytes) -> None:
            async with asyncio.timeout(self._send_seconds):
                await send({"type": "http.response.body", "body": event, "more_body": True})

        async def send_all() -> None:
            try:
                async for each in self._messages:
                    await send_event(each.event)
            except HeadraceError as error:
                await send_event(error_message(type(error).__name__, str(error)).event)

        async def has_ended() -> bytes:
            refused = await permission_ends(scope)
            return error_message(refused.error, refused.message).event

        async def hung_up() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        with self._place:
            async with aclosing(self._messages):
                start = {"status": self.status_code, "headers": self.raw_headers}
                await send({"type": "http.response.start", **start})
                try:
                    last = await _first_of(
                        send_all(), hung_up(), self._stopping.wait(), has_ended()
                    )
                    await send_event(last or b"")
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                except TimeoutError:
                    drop_of(scope)(_too_slow().event, NOT_TAKEN, "")


async def send_to_socket(
    websocket: WebSocket,
    messages: AsyncGenerator[Message],
    *,
    place: AbstractContextManager[None],
    stopping: Stopping,
    send_seconds: float,
) -> None:
    """Send messages to a WebSocket that was accepted, until one of them is done with it."""

    async def send_message(each: Message) -> None:
        async with asyncio.timeout(send_seconds):
            await websocket.send_text(each.data.decode())

    async def send_all() -> Awaitable[None] | None:
        try:
            async for each in messages:
                await send_message(each)
        except HeadraceError as error:
            await send_message(error_message(type(error).__name__, str(error)))
            return websocket.close(4000 + status_of(error), _short(str(error)))
        return None

    async def spoke() -> Awaitable[None] | None:
        if (await websocket.receive())["type"] == "websocket.disconnect":
            return None
        return websocket.close(NOT_OURS, "a follower sends nothing; everything is in the request")

    async def has_ended() -> Awaitable[None] | None:
        return refuse_socket(websocket, await permission_ends(websocket.scope))

    async def stops() -> Awaitable[None] | None:
        await stopping.wait()
        return websocket.close(STOPS, "the engine stops; ask again when it is back")

    with place:
        async with aclosing(messages):
            try:
                closing = await _first_of(send_all(), spoke(), stops(), has_ended())
                if closing is not None:
                    async with asyncio.timeout(send_seconds):
                        await closing
            except TimeoutError:
                drop_of(websocket.scope)(_too_slow().data, NOT_TAKEN, "TooSlow")
            except WebSocketDisconnect:
                return  # it is gone already, or was closed by the server that stops


async def refuse_socket(websocket: WebSocket, error: HeadraceError | Refused) -> None:
    """Tell a WebSocket that was accepted why it is closed, and close it."""
    if isinstance(error, Refused):
        name, text, status = error.error, error.message, error.status_code
    else:
        name, text, status = type(error).__name__, str(error), status_of(error)
    with suppress(WebSocketDisconnect):
        await websocket.send_text(error_message(name, text).data.decode())
        await websocket.close(4000 + status, _short(text))


async def _first_of(*works: Coroutine[Any, Any, Any]) -> Any:
    """Return what the first of several gives, or raise what it raises; the others are ended."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _too_slow() -> Message:
    return error_message(
        "TooSlow",
        "messages were not taken as fast as they came; read them sooner, and go on after the last "
        "token",
    )


def _short(message: str) -> str:
    """Return a message as the reason of a close frame, which has at most 123 bytes."""
    return message.encode()[:120].decode(errors="ignore")
