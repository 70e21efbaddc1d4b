"""Who may ask for what: tokens with roles, and sessions of browsers.

    ingest    append to topics
    read      everything that changes nothing
    admin     both, and what changes the engine: pause, resume, export

Promises:
- A token is compared in a time that does not depend on how much of it is right.
- A session lives in memory, no longer than its token, and at most SESSION_SECONDS; of MAX_SESSIONS
  the oldest goes first. Its id is not the token, and the token cannot be had from it.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["MAX_SESSIONS", "SESSION_SECONDS", "Grant", "Permissions", "Role", "TokenGrant"]

SESSION_SECONDS = 7 * 24 * 3600
MAX_SESSIONS = 1_000


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

    `anyone` is what a connection has without a token: where TLS has checked its certificate.
    """

    def __init__(
        self,
        tokens: Sequence[TokenGrant],
        *,
        anyone: Grant | None = None,
        now_us: Callable[[], int] = _now_us,
    ) -> None:
        self._tokens = tuple(tokens)
        self._anyone = anyone
        self._now_us = now_us
        self._sessions: dict[bytes, Grant] = {}
        self._mutex = threading.Lock()

    def of_token(self, token: str) -> Grant | None:
        """Return what a token grants; None: it is unknown or has expired."""
        given, found = _digest(token), None
        for each in self._tokens:  # all of them, so that the time tells nothing
            if hmac.compare_digest(given, each.digest):
                found = each.grant
        return found if found is not None and not self._has_expired(found) else None

    def of_anyone(self) -> Grant | None:
        """Return what is granted without a token, if anything."""
        return self._anyone

    def of_session(self, session: str) -> Grant | None:
        """Return what a session grants; None: it is unknown or has expired."""
        with self._mutex:
            grant = self._sessions.get(_digest(session))
        return grant if grant is not None and not self._has_expired(grant) else None

    def log_in(self, token: str) -> tuple[str, Grant] | None:
        """Begin a session with a token; None: it is unknown or has expired."""
        found = self.of_token(token)
        if found is None:
            return None
        until_us = self._now_us() + SESSION_SECONDS * 1_000_000
        expires_us = until_us if found.expires_us is None else min(until_us, found.expires_us)
        grant = Grant(found.name, found.role, expires_us)
        session = secrets.token_urlsafe(32)
        with self._mutex:
            while len(self._sessions) >= MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[_digest(session)] = grant
        return session, grant

    def log_out(self, session: str) -> None:
        """End a session."""
        with self._mutex:
            self._sessions.pop(_digest(session), None)

    def _has_expired(self, grant: Grant) -> bool:
        return grant.expires_us is not None and grant.expires_us <= self._now_us()
