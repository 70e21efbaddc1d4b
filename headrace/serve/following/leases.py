"""The leases that changes are kept by for subscribers: two for each view, by their names.

- `following <view>` stands where the hub reads. While it is there, the changes behind it are.
- `resuming <view>` stays some time behind, so that a subscriber that was cut off comes back with
  its token, and behind every token that is pinned. It never moves back, since what it left may be
  gone: so no token, however old, can make it one that is too far behind. It may end when the view
  changes more than the limits let the store keep: the hub's own place is not lost with it.

Both are in the ledger under these names. What a process left behind when it died is taken over by
the next one: `resuming` is held for as long as a subscriber may take to come back, then let go.
"""

import threading
import time
from collections import deque
from collections.abc import Collection

from headrace.errors import TokenTooOld
from headrace.ledger.following import Token
from headrace.store.base import Store

__all__ = ["Leases", "left_behind"]

_FOLLOWING, _RESUMING = "following ", "resuming "
_STEP_SECONDS = 1.0  # between two places that `resuming` moves to


class Leases:
    """The leases of one view. All but `pin` writes, or may: for threads."""

    def __init__(self, store: Store, view: str, *, resume_seconds: float) -> None:
        self._store = store
        self._view = view
        self._resume_seconds = resume_seconds
        self._mutex = threading.Lock()  # held while the store is written
        self._places: deque[tuple[float, Token]] = deque()
        self._pinning = threading.Lock()  # never held while the store is: the event loop takes it
        self._pinned: dict[object, Token] = {}
        self._floor = 0  # the commit that `resuming` stands at
        self._is_kept = False
        self._is_followed = False

    def adopt(self, left: Collection[str]) -> None:
        """Take over the leases that another process left: only `resuming` goes on."""
        self._is_kept = f"{_RESUMING}{self._view}" in left
        with self._store.open() as snapshot:
            if (kept := snapshot.kept_changes().get(self._view)) is not None:
                self._floor = kept.since  # or a little later
        self._store.unfollow(f"{_FOLLOWING}{self._view}")

    def begin(self) -> Token:
        """Follow the view from the last commit on; return its token. TokenRefused."""
        with self._mutex:
            token = self._store.follow(f"{_FOLLOWING}{self._view}", self._view)
            self._is_followed = True
            if not self._is_kept:
                self._keep(token)
            self._places.append((time.monotonic(), token))
        return token

    def _keep(self, token: Token) -> None:
        self._store.follow(f"{_RESUMING}{self._view}", self._view, token)
        self._is_kept = True
        with self._pinning:
            self._floor = token.whole

    def pin(self, owner: object, token: Token | None) -> None:
        """Keep what follows a token until its owner needs it no more (None). For any thread.

        What is not kept any more is not kept for it either: reading tells whether it is there.
        """
        with self._pinning:
            self._pinned.pop(owner, None)
            if token is not None and token.whole >= self._floor:
                self._pinned[owner] = token

    def move(self, token: Token) -> None:
        """Note how far the hub is. TokenTooOld: it was too slow, and changes are gone."""
        self._store.renew(f"{_FOLLOWING}{self._view}", token)
        now = time.monotonic()
        with self._mutex:
            if not self._places or now - self._places[-1][0] >= _STEP_SECONDS:
                self._places.append((now, token))
            left = None
            while self._places and now - self._places[0][0] > self._resume_seconds:
                left = self._places.popleft()[1]
            if left is None:
                return
            with self._pinning:
                kept = min([left, *self._pinned.values()], key=lambda each: each.whole)
                if kept.whole < self._floor:
                    return  # its lease was made anew meanwhile
                self._floor = kept.whole
            try:
                self._store.renew(f"{_RESUMING}{self._view}", kept)
            except TokenTooOld:
                self._keep(token)

    def end(self) -> None:
        """Let go of both."""
        with self._mutex:
            self._end()

    def end_unless_followed(self) -> None:
        """Let go of what was taken over, if no subscriber came back."""
        with self._mutex:
            # Once they ended, the names may be those of other leases.
            if self._is_kept and not self._is_followed:
                self._end()

    def _end(self) -> None:
        self._is_followed = self._is_kept = False
        self._places.clear()
        for name in (_FOLLOWING, _RESUMING):
            self._store.unfollow(f"{name}{self._view}")


def left_behind(store: Store) -> dict[str, set[str]]:
    """Return the leases that another process left, by view."""
    with store.open() as snapshot:
        leases = snapshot.leases()
    found: dict[str, set[str]] = {}
    for lease, view in leases.items():
        if lease in (f"{_FOLLOWING}{view}", f"{_RESUMING}{view}"):
            found.setdefault(view, set()).add(lease)
    return found
