"""What was opened over a log, such as members of its groups: it ends with the log.

Promises:
- Closing the log first closes its clients, those that are still referred to, then what they share.
- A client that cannot be closed keeps none of the others open, nor the log.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar
from weakref import WeakSet

from headrace.errors import HeadraceError

__all__ = ["Client", "Clients"]


class Client(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Let go of the log."""
        ...


C = TypeVar("C", bound=Client)


class Clients:
    """The clients of one log. Safe for several threads."""

    def __init__(self) -> None:
        self._open: WeakSet[Client] = WeakSet()
        self._shared: dict[type[Client], Client] = {}

    def add(self, client: C) -> C:
        """Close a client with the log, unless nobody refers to it by then."""
        self._open.add(client)
        return client

    def share(self, kind: type[C], make: Callable[[], C]) -> C:
        """Return what all clients of a kind have in common; the first of them makes it."""
        # `setdefault` is one step: of two threads that make one, both get the same.
        found = self._shared.get(kind) or self._shared.setdefault(kind, make())
        assert isinstance(found, kind)
        return found

    def close(self) -> None:
        """Close all of them."""
        for client in list(self._open):
            with suppress(HeadraceError):  # its session ends by itself
                client.close()
        for shared in self._shared.values():
            shared.close()
