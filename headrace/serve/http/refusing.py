"""Refuse a request before a route has it."""

from fastapi.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from headrace.serve.http.connections import drop_of
from headrace.serve.http.errors import Refused

__all__ = ["close_reason", "drop", "refuse"]


async def refuse(scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
    """Answer a request, or close a WebSocket, with the reason."""
    if scope["type"] == "http":
        answer = JSONResponse(refused.body, refused.status_code, headers=refused.headers)
        await answer(scope, receive, send)
        return
    # Before it is accepted, closing a WebSocket answers its request with 403 and no body; the
    # asker would not learn why.
    await receive()
    await send({"type": "websocket.accept"})
    drop(scope, refused)


def drop(scope: Scope, refused: Refused) -> None:
    """Close a WebSocket that was accepted, at once: that it agrees is not waited for."""
    drop_of(scope)(b"", 4000 + refused.status_code, close_reason(refused.message))


def close_reason(message: str) -> str:
    """Return a message as the reason of a close frame, which has at most 123 bytes."""
    return message.encode()[:120].decode(errors="ignore")
