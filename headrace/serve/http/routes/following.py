"""Subscriptions: the changes of a view by WebSocket or as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Request, WebSocket
from fastapi.requests import HTTPConnection
from fastapi.responses import Response

from headrace.errors import UsageError
from headrace.ledger.following import Token
from headrace.serve.following.following import Following
from headrace.serve.following.subscription import Wanted
from headrace.serve.http.errors import ERRORS
from headrace.serve.http.guard import needs
from headrace.serve.http.parameters import refuse_unknown
from headrace.serve.http.permissions import Role
from headrace.serve.http.streaming import EVENTS, EventStream, send_to_socket
from headrace.serve.message import Message

__all__ = ["router"]

router = APIRouter(tags=["views"], responses=dict(ERRORS))

_ABOUT_SSE: dict[int | str, dict[str, Any]] = {
    200: {"description": "events, for as long as you listen", "content": {EVENTS: {}}}
}


def _wanted(connection: HTTPConnection) -> Wanted:
    """Return what a subscriber asks for. UsageError, TokenRefused."""
    refuse_unknown(connection, ("after", "where", "columns", "snapshot"))
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


@asynccontextmanager
async def _opening(
    connection: HTTPConnection, view: str
) -> AsyncIterator[AsyncGenerator[list[Message]]]:
    following: Following = connection.app.state.following
    async with following.subscribe(view, _wanted(connection)) as subscription:
        yield subscription.messages()


def _send_seconds(connection: HTTPConnection) -> float:
    following: Following = connection.app.state.following
    return following.limits.send_seconds


@router.websocket("/v1/views/{name}/changes")
async def follow(websocket: WebSocket, name: str) -> None:
    """Send a view's rows and changes as text frames; the client has nothing to say."""
    opening = _opening(websocket, name)
    await send_to_socket(websocket, opening, send_seconds=_send_seconds(websocket))


@router.get(
    "/v1/views/{name}/changes",
    summary="Follow a view",
    dependencies=[needs(Role.READ)],
    response_class=Response,
    responses=_ABOUT_SSE,
)
async def events(request: Request, name: str) -> Response:
    """Send a view's rows and changes as server-sent events; by WebSocket at the same address."""
    return EventStream(_opening(request, name), send_seconds=_send_seconds(request))
