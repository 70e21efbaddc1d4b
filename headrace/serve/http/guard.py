"""The door: who asks, and how much at once. It stands before every route.

1. **Permission.** A token, a session of a browser, or a certificate (`permissions.py`). Browsers
   send the latter two for the pages of others too, so what comes from a page must come from one of
   this server then (`Origin`). With a session, what changes something and every WebSocket must.
2. **Rate.** Each token has `requests_per_second`, with a burst of as many: 429 beyond.
3. **Room.** `max_requests` are answered at once: 503 beyond (`room.py`). Those who need no
   permission and have none get `max_open_requests` of their own. WebSockets do not count here:
   subscriptions have a bound of their own.

Which names the server has is checked before (`listener.py`). What a route needs is said by the
route: `needs(Role.READ)`.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import Depends, Request, WebSocket
from fastapi.params import Depends as Dependency
from fastapi.requests import HTTPConnection
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.serve.http.connections import taken
from headrace.serve.http.errors import Refused
from headrace.serve.http.listener import has_certificate
from headrace.serve.http.permissions import Grant, Permissions, Role
from headrace.serve.http.refusing import drop, refuse
from headrace.serve.http.room import Place, Room

__all__ = [
    "MAX_REQUESTS",
    "OPEN_PATHS",
    "SESSION_COOKIE",
    "Guard",
    "Limits",
    "check_role",
    "grant_of",
    "is_granted",
    "may_follow",
    "needs",
    "permission_ends",
    "session_of",
]

MAX_REQUESTS = 64
MAX_OPEN_REQUESTS = 16  # of those who have no permission
REQUESTS_PER_SECOND = 1_000
SESSION_COOKIE = "headrace_session"
#: What needs no permission: it says nothing about the project.
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/v1/login", "/"})
OPEN_PREFIX = "/assets/"

_GRANT = "headrace.grant"
_ENDS = "headrace.permission_ends"
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class Limits:
    """How much is answered at once, and how much of one token."""

    max_requests: int = MAX_REQUESTS
    max_open_requests: int = MAX_OPEN_REQUESTS
    requests_per_second: int = REQUESTS_PER_SECOND


class Guard:
    """Lets a request through, or answers it with 401, 403, 429 or 503."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        permissions: Permissions,
        limits: Limits | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._permissions = permissions
        self._limits = limits or Limits()
        self._room = Room(self._limits.max_requests)
        self._open_room = Room(self._limits.max_open_requests)
        self._now = now
        self._rates: dict[str, _Bucket] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request's head."""
        if scope["type"] not in ("http", "websocket"):
            return
        try:
            scope[_GRANT] = self._check(scope)
            scope[_ENDS] = self._ends
            place = Place(self._open_room if scope[_GRANT] is None else self._room, scope)
        except Refused as refused:
            await refuse(scope, receive, send, refused)
            return
        if scope["type"] == "websocket":
            place.give_back()  # it stays open; subscriptions have their bounds
        try:
            await self._app(scope, receive, send)
            if scope["type"] == "http":
                await taken(scope)
        finally:
            place.give_back()

    def _check(self, scope: Scope) -> Grant | None:
        grant = self._grant(scope)
        if grant is None and not _is_open(scope["path"]):
            raise Refused(
                401,
                "AccessDenied",
                "the token is missing, wrong or has expired. Send `Authorization: Bearer TOKEN`; "
                "of an engine on this machine it is in .headrace/engine.json.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        self._check_rate("" if grant is None else grant.name)
        return grant

    async def _ends(self, scope: Scope) -> Refused:
        while True:
            logouts = self._permissions.logouts
            grant = self._grant(scope)
            if grant is None:
                return Refused(
                    401,
                    "AccessDenied",
                    "the token has expired, or its session was logged out; come back with another",
                )
            await self._permissions.changed(grant, logouts)

    def _grant(self, scope: Scope) -> Grant | None:
        headers = Headers(scope=scope)
        if (given := headers.get("authorization")) is not None:
            kind, _, token = given.partition(" ")
            return self._permissions.of_token(token) if kind == "Bearer" else None
        session = _session_of(headers)
        found = None if session is None else self._permissions.of_session(session)
        asks_to_change = scope["type"] == "websocket" or scope["method"] in _CHANGING
        must_say_origin = found is not None and asks_to_change
        if found is None and has_certificate(scope):
            found = self._permissions.of_certificate()
        if found is None:
            return None
        # A browser sends cookie and certificate for any page; programs say no origin.
        origin = headers.get("origin")
        if (must_say_origin or origin is not None) and origin not in _origins(scope, headers):
            raise Refused(
                403,
                "AccessDenied",
                "a browser may do this from the engine's own pages only; programs send "
                "`Authorization: Bearer TOKEN`",
            )
        return found

    def _check_rate(self, name: str) -> None:
        rate = self._limits.requests_per_second
        bucket = self._rates.setdefault(name, _Bucket(rate, self._now()))
        if not bucket.take(rate, self._now()):
            raise Refused(
                429,
                "EngineBusy",
                f"more than {rate} requests a second with this token; send more records in each, "
                f"or raise [serve] max_requests_per_second",
                headers={"Retry-After": "1"},
            )


@dataclass
class _Bucket:
    """What is left of a second's requests."""

    left: float
    since: float

    def take(self, rate: int, now: float) -> bool:
        self.left = min(float(rate), self.left + (now - self.since) * rate)
        self.since = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_PREFIX)


def _session_of(headers: Headers) -> str | None:
    # Not http.cookies, which stops at the first cookie it dislikes: others on this host set those.
    return cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE)


def _origins(scope: Scope, headers: Headers) -> tuple[str, ...]:
    """Return how a page of this server is called; something in front of it may do TLS."""
    host = headers.get("host", "")
    secure = scope["scheme"] in ("https", "wss")
    return (f"https://{host}",) if secure else (f"https://{host}", f"http://{host}")


def grant_of(connection: HTTPConnection) -> Grant | None:
    """Return who asks; None only where no permission is needed."""
    grant: Grant | None = connection.scope.get(_GRANT)
    return grant


async def permission_ends(scope: Scope) -> Refused:
    """Wait until who asked has no permission any more; return what answers that stay open say."""
    wait: Callable[[Scope], Awaitable[Refused]] = scope[_ENDS]
    return await wait(scope)


def is_granted(scope: Scope) -> bool:
    """Whether who asks has any permission."""
    return scope.get(_GRANT) is not None


def session_of(connection: HTTPConnection) -> str | None:
    """Return the session of a browser."""
    return _session_of(Headers(scope=connection.scope))


def check_role(connection: HTTPConnection, role: Role) -> Grant:
    """Return who asks. Refused: it takes another role."""
    grant = grant_of(connection)
    if grant is None or not grant.role.allows(role):
        has = "no role" if grant is None else f"the role {grant.role}"
        raise Refused(403, "AccessDenied", f"this takes the role {role}; the token has {has}")
    return grant


def needs(role: Role) -> Dependency:
    """Return what a route depends on that takes a role."""

    async def check(request: Request) -> None:  # in the event loop: a thread would cost more
        check_role(request, role)

    found: Dependency = Depends(check)
    return found


async def may_follow(websocket: WebSocket) -> bool:
    """Accept a WebSocket of who may read; else close it and say why."""
    await websocket.accept()
    try:
        check_role(websocket, Role.READ)
    except Refused as refused:
        drop(websocket.scope, refused)
        return False
    return True
