"""Subscriptions: the changes of a view by WebSocket or as server-sent events."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from fastapi import APIRouter, Request, WebSocket
from fastapi.requests import HTTPConnection
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from headrace.errors import (
    EngineBusy,
    HeadraceError,
    QueryRefused,
    TokenRefused,
    TooSlow,
    UsageError,
    ViewNotFound,
)
from headrace.ledger.following import Token
from headrace.serve.following.following import Following
from headrace.serve.following.subscription import Subscription, Wanted
from headrace.serve.http.connections import drop_of, sending_texts
from headrace.serve.http.errors import ERRORS
from headrace.serve.http.guard import may_follow, needs, permission_ends
from headrace.serve.http.permissions import Role
from headrace.serve.http.room import stays_open
from headrace.serve.http.stopping import Stopping, stopping_of
from headrace.serve.message import Message, error_message

__all__ = ["router"]

router = APIRouter(tags=["views"], responses=dict(ERRORS))

TOO_SLOW = 4408
RESTARTS = 1012  # of WebSocket: the service restarts
_FRAME_SENT = 4400
_CODES: Mapping[type[HeadraceError], int] = {
    UsageError: 4400,
    ViewNotFound: 4404,
    TokenRefused: 4409,
    QueryRefused: 4413,
    EngineBusy: 4429,
    TooSlow: TOO_SLOW,
}
_ABOUT_SSE: dict[int | str, dict[str, Any]] = {
    200: {"description": "events, for as long as you listen", "content": {"text/event-stream": {}}}
}

#: Sends messages; TimeoutError: the connection takes nothing.
_Send = Callable[[Sequence[Message]], Awaitable[None]]


def _wanted(connection: HTTPConnection) -> Wanted:
    """Return what a subscriber asks for. UsageError, TokenRefused."""
    parameters = connection.query_params
    with_rows = parameters.get("snapshot", "true").lower()
    if with_rows not in ("true", "false"):
        raise UsageError(f"snapshot={with_rows[:100]!r}: write true or false")
    # A browser that reconnects sends both: `after` is where it began, the header where it stood.
    after = connection.headers.get("last-event-id") or parameters.get("after") or None
    return Wanted(
        None if after is None else Token.parse(after),
        parameters.getlist("where"),
        parameters.getlist("columns"),
        with_rows == "true",
    )


def _code(error: HeadraceError) -> int:
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), 1011)


async def _send_all(
    subscription: Subscription, send: _Send, scope: Scope, send_seconds: float
) -> tuple[Message | None, int]:
    """Send until the subscription ends; return the last message and the code to close with.

    A socket that takes nothing for so long is dropped.
    """
    try:
        async for found in subscription.messages():
            try:
                if found:
                    await send(found)
                # A send that finds room does not wait: let others in, who left among them.
                await asyncio.sleep(0)
            except TimeoutError:
                told = error_message(
                    "TooSlow",
                    f"the connection took no bytes for {send_seconds:g} seconds; read faster",
                )
                last = told.event if scope["type"] == "http" else told.data
                drop_of(scope)(last, TOO_SLOW, "")
                return None, TOO_SLOW
    except HeadraceError as error:
        return error_message(type(error).__name__, str(error)), _code(error)
    raise AssertionError("a subscription ends with a reason")


@router.websocket("/v1/views/{name}/changes")
async def follow(websocket: WebSocket, name: str) -> None:
    """Send a view's rows and changes as text frames; the client has nothing to say."""
    if not await may_follow(websocket):
        return
    following: Following = websocket.app.state.following
    last: Message | None
    try:
        async with AsyncExitStack() as stack:
            subscription = await stack.enter_async_context(
                following.subscribe(name, _wanted(websocket))
            )
            send_seconds = following.limits.send_seconds
            last, code = await _until_frame(websocket, subscription, send_seconds)
    except HeadraceError as error:
        last, code = error_message(type(error).__name__, str(error)), _code(error)
    if code is not None:
        await _end(websocket, last, code, following.limits.send_seconds)


async def _until_frame(
    websocket: WebSocket, subscription: Subscription, send_seconds: float
) -> tuple[Message | None, int | None]:
    """Send until it ends, or until the client says something or leaves (None)."""
    send_texts = sending_texts(websocket.scope)

    async def send(found: Sequence[Message]) -> None:
        await send_texts([each.data for each in found], send_seconds)

    sending = asyncio.create_task(_send_all(subscription, send, websocket.scope, send_seconds))
    ending = asyncio.create_task(permission_ends(websocket.scope))
    stopping = asyncio.create_task(stopping_of(websocket.app).wait())
    receiving = asyncio.create_task(websocket.receive())
    tasks = (sending, ending, stopping, receiving)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            return sending.result()
        if ending.done():
            refused = ending.result()
            return error_message(refused.error, refused.message), 4000 + refused.status_code
        if stopping.done():
            return None, RESTARTS
        if receiving.result()["type"] == "websocket.disconnect":
            return None, None
        said = "a subscription takes no messages from its client; ask by HTTP"
        return error_message("UsageError", said), _FRAME_SENT
    except WebSocketDisconnect:
        return None, None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _end(websocket: WebSocket, last: Message | None, code: int, send_seconds: float) -> None:
    data = b"" if last is None else last.data
    try:
        async with asyncio.timeout(send_seconds):
            if data:
                await websocket.send_text(data.decode())
            await websocket.close(code)
    except TimeoutError:
        drop_of(websocket.scope)(data, code, "")
    except (WebSocketDisconnect, RuntimeError):
        pass  # it is closed already: by the client, or dropped


@router.get(
    "/v1/views/{name}/changes",
    summary="Follow a view",
    dependencies=[needs(Role.READ)],
    response_class=Response,
    responses=_ABOUT_SSE,
)
async def events(request: Request, name: str) -> Response:
    """Send a view's rows and changes as server-sent events; by WebSocket at the same address."""
    following: Following = request.app.state.following
    stack = AsyncExitStack()
    subscription = await stack.enter_async_context(following.subscribe(name, _wanted(request)))
    stays_open(request.scope)
    stopping = stopping_of(request.app)
    return _EventStream(stack, subscription, stopping, following.limits.send_seconds)


class _EventStream(Response):
    """Events until the subscription ends or the client leaves; then all is let go."""

    def __init__(
        self,
        stack: AsyncExitStack,
        subscription: Subscription,
        stopping: Stopping,
        send_seconds: float,
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._stack = stack
        self._subscription = subscription
        self._stopping = stopping
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_events(found: Sequence[Message]) -> None:
            events = b"".join(each.event for each in found)
            async with asyncio.timeout(self._send_seconds):
                await send({"type": "http.response.body", "body": events, "more_body": True})

        async def wait_until_left() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),  # a proxy is to hand events on at once
        ]
        async with self._stack:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            sending = asyncio.create_task(
                _send_all(self._subscription, send_events, scope, self._send_seconds)
            )
            ending = asyncio.create_task(permission_ends(scope))
            stopping = asyncio.create_task(self._stopping.wait())
            leaving = asyncio.create_task(wait_until_left())
            tasks = (sending, ending, stopping, leaving)
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                last: Message | None = None
                if sending.done():
                    last, _ = sending.result()
                elif ending.done():
                    refused = ending.result()
                    last = error_message(refused.error, refused.message)
                if last is not None:
                    try:
                        await send_events([last])
                    except TimeoutError:
                        drop_of(scope)(last.event, 0, "")
                if not leaving.done():
                    await send({"type": "http.response.body", "body": b""})
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
