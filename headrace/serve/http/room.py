"""Room for so many requests that are answered at once: 503 beyond.

A request has a place from its head to the end of its answer, but for two kinds, which have bounds
of their own: one whose answer stays open gives its place back (`stays_open`), and so does one that
waits for something to happen, for as long as it does (`waiting`).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import Request
from starlette.types import Scope

from headrace.serve.http.errors import Refused

__all__ = ["Place", "Room", "stays_open", "waiting"]

_PLACE = "headrace.place"


class Room:
    """How many requests are answered, and how many may be."""

    def __init__(self, max_requests: int) -> None:
        self.max_requests = max_requests
        self.requests = 0


class Place:
    """The place of one request in a room. Refused: there is none."""

    def __init__(self, room: Room, scope: Scope) -> None:
        self._room = room
        self._is_taken = False
        self.take()
        scope[_PLACE] = self

    def take(self) -> None:
        """Take the place, which was given back. Refused."""
        if self._room.requests >= self._room.max_requests:
            raise Refused(
                503,
                "EngineBusy",
                f"the engine answers {self._room.max_requests} requests already, which is the "
                f"most at once; ask again in a moment",
                headers={"Retry-After": "1"},
            )
        self._room.requests += 1
        self._is_taken = True

    def give_back(self) -> None:
        """Let another request have the place."""
        if self._is_taken:
            self._room.requests -= 1
            self._is_taken = False


def _place_of(scope: Scope) -> Place:
    found: Place = scope[_PLACE]
    return found


def stays_open(scope: Scope) -> None:
    """Give the place of a request back: its answer stays open for as long as the asker likes."""
    _place_of(scope).give_back()


@contextmanager
def waiting(request: Request) -> Iterator[None]:
    """Give the place of a request back while it waits within. Refused: none is left after that."""
    place = _place_of(request.scope)
    place.give_back()
    yield
    place.take()
