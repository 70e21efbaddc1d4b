"""Who may ask the engine: requests to this machine's own name, with the token, of bounded size.

The token keeps other users of the machine out. The Host header keeps out web pages, which a
browser would otherwise let in under a name that resolves to 127.0.0.1 (DNS rebinding). Of those
who have the token MAX_REQUESTS are answered at once; one more gets 503 and a sentence.
"""

import asyncio
import hmac

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["MAX_BODY_BYTES", "MAX_REQUESTS", "Guard", "TooLarge", "TooSlow", "read_body"]

MAX_BODY_BYTES = 1 << 20
MAX_REQUESTS = 64
BODY_SECONDS = 30.0
_HOSTS = ("127.0.0.1", "localhost")


class TooLarge(Exception):
    """A request's body is over the limit."""


class TooSlow(Exception):
    """A request's body does not arrive."""


class Guard:
    """Lets a request through, or answers it with 400 (host), 401 (token) or 503 (too many)."""

    def __init__(self, app: ASGIApp, *, token: str, max_requests: int = MAX_REQUESTS) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._max_requests = max_requests
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request's headers."""
        if scope["type"] != "http":
            return  # no websocket yet; unanswered, the server closes it
        headers = Headers(scope=scope)
        host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
        given = headers.get("authorization", "").encode()
        if host not in _HOSTS:
            answer = _refuse(400, f"host {host!r} is not served here; ask 127.0.0.1")
        elif not hmac.compare_digest(given, self._expected):
            message = "the token is missing or wrong; it is in .headrace/engine.json"
            answer = _refuse(401, message, {"WWW-Authenticate": "Bearer"})
        elif self._under_way >= self._max_requests:
            message = (
                f"the engine answers {self._max_requests} requests already, which is the most at "
                f"once; ask again in a moment"
            )
            answer = _refuse(503, message, {"Retry-After": "1"}, error="Unreachable")
        else:
            self._under_way += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._under_way -= 1
            return
        await answer(scope, receive, send)


def _refuse(
    status: int,
    message: str,
    headers: dict[str, str] | None = None,
    *,
    error: str = "UsageError",
) -> JSONResponse:
    body = {"error": error, "message": message}
    return JSONResponse(body, status_code=status, headers=headers)


async def read_body(request: Request) -> bytes:
    """Return a request's body. TooLarge: as soon as it passes the limit. TooSlow."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise TooLarge
    except TimeoutError as error:
        raise TooSlow from error
    return bytes(body)
