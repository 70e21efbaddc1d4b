"""Who may ask for what: tokens with roles, and sessions of browsers.

    ingest    append to topics
    read      everything that changes nothing
    admin     both, and what changes the engine: pause, resume, export

Promises:
- A token is compared in a time that does not depend on how much of it is right; only its hash is
  kept.
- A session is a signed text: which token began it, and until when it holds. So it outlives a
  restart of the engine, and ends with its token, which cannot be had from it.
- A session that is logged out is not accepted again by this process. (Of MAX_ENDED the oldest is
  forgotten; the browser has none of them any more.)
- What was granted may end while an answer is open; `changed` says when to look again.
"""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headrace.serve.signal import Signal

__all__ = ["SESSION_SECONDS", "Grant", "Permissions", "Role", "TokenGrant"]

SESSION_SECONDS = 7 * 24 * 3600
MAX_ENDED = 10_000
_LOOK_SECONDS = 60.0  # clocks are set, and machines sleep


class Role(StrEnum):
    """What a token is for."""

    INGEST = "ingest"
    READ = "read"
    ADMIN = "admin"

    def allows(self, needed: "Role") -> bool:
        """Whether who has this role may do what `needed` is for."""
        return self in (needed, Role.ADMIN)


@dataclass(frozen=True)
class Grant:
    """Who asks. `name` is the token's in headrace.toml; `expires_us` None: as long as it runs."""

    name: str
    role: Role
    expires_us: int | None = None


@dataclass(frozen=True)
class TokenGrant:
    """A token and what it grants; only the hash of the token is kept."""

    digest: bytes
    grant: Grant

    @classmethod
    def of(cls, token: str, grant: Grant) -> "TokenGrant":
        """Return what a token grants."""
        return cls(_digest(token), grant)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _now_us() -> int:
    return time.time_ns() // 1000


class Permissions:
    """All grants of a server. Safe for several threads.

    `certificate` is what a client has without a token where TLS has checked its certificate. `key`
    signs sessions; without one, those of another process are not accepted.
    """

    def __init__(
        self,
        tokens: Sequence[TokenGrant],
        *,
        certificate: Grant | None = None,
        key: bytes | None = None,
        now_us: Callable[[], int] = _now_us,
    ) -> None:
        self._tokens = tuple(tokens)
        self._certificate = certificate
        self._key = key or secrets.token_bytes(32)
        self._now_us = now_us
        self._ended: dict[str, None] = {}
        self._logouts = Signal()
        self._mutex = threading.Lock()

    def of_token(self, token: str) -> Grant | None:
        """Return what a token grants; None: it is unknown or has expired."""
        return self._of_digest(_digest(token))

    def of_certificate(self) -> Grant | None:
        """Return what a certificate grants without a token, if anything."""
        return self._certificate

    def of_session(self, session: str) -> Grant | None:
        """Return what a session grants; None: it is none of ours, or has ended."""
        claims, _, signature = session.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(claims).encode()):
            return None
        with self._mutex:
            if session in self._ended:
                return None
        digest, expires_us = json.loads(base64.urlsafe_b64decode(claims))
        found = self._of_digest(bytes.fromhex(digest))
        if found is None or expires_us <= self._now_us():
            return None
        return Grant(found.name, found.role, expires_us)

    def log_in(self, token: str) -> tuple[str, Grant] | None:
        """Begin a session with a token; None: it is unknown or has expired."""
        found = self.of_token(token)
        if found is None:
            return None
        until_us = self._now_us() + SESSION_SECONDS * 1_000_000
        expires_us = until_us if found.expires_us is None else min(until_us, found.expires_us)
        text = json.dumps([_digest(token).hex(), expires_us])
        claims = base64.urlsafe_b64encode(text.encode()).decode()
        session = f"{claims}.{self._sign(claims)}"
        return session, Grant(found.name, found.role, expires_us)

    def log_out(self, session: str) -> None:
        """End a session."""
        if self.of_session(session) is None:
            return
        with self._mutex:
            while len(self._ended) >= MAX_ENDED:
                del self._ended[next(iter(self._ended))]
            self._ended[session] = None
        self._logouts.note()

    @property
    def logouts(self) -> int:
        """How many sessions were logged out."""
        return self._logouts.count

    async def changed(self, grant: Grant, logouts: int) -> None:
        """Wait until a grant may have ended: it expires, or more sessions than these logged out."""
        seconds = _LOOK_SECONDS
        if grant.expires_us is not None:
            seconds = min(seconds, max(0, grant.expires_us - self._now_us()) / 1_000_000)
        await self._logouts.after(logouts, timeout_s=seconds)

    def _of_digest(self, digest: bytes) -> Grant | None:
        found = None
        for each in self._tokens:  # all of them, so that the time tells nothing
            if hmac.compare_digest(digest, each.digest):
                found = each.grant
        expires_us = None if found is None else found.expires_us
        return None if expires_us is not None and expires_us <= self._now_us() else found

    def _sign(self, claims: str) -> str:
        return hmac.new(self._key, b"session:" + claims.encode(), hashlib.sha256).hexdigest()
