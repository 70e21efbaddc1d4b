"""One reader of a view's changes for all who subscribe to it.

Promises:
- The store is read once for each commit, however many subscribe; what they get is encoded once for
  each shape.
- Reading and encoding happen in threads; a subscriber that is slow holds up nobody: what it does
  not take in time leaves the ring.
- When the last subscriber has left, the hub goes on for `resume_seconds`, then lets the view go.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

from headrace.errors import EngineError, HeadraceError, StoreError, TokenRefused
from headrace.ledger.following import Page, Token
from headrace.serve.following.leases import Leases
from headrace.serve.following.messages import progress
from headrace.serve.following.ring import Item, Ring
from headrace.serve.following.shapes import Shape
from headrace.serve.message import Message
from headrace.serve.reading.positions import position_of
from headrace.serve.reading.topics import TopicNames
from headrace.serve.signal import Signal
from headrace.store.base import Snapshot, Store

__all__ = ["FollowLimits", "Hub", "progress_of"]

logger = logging.getLogger("headrace.serve")

T = TypeVar("T")

_PAUSE_SECONDS = 1.0  # before what the store could not do is tried again
_MAX_TRIES = 5


@dataclass(frozen=True)
class FollowLimits:
    """The bounds of subscriptions."""

    max_subscribers: int = 500
    page_rows: int = 1_000  # of a message
    page_bytes: int = 1 << 20  # of its rows in Arrow; as JSON they are a few times as many
    ring_bytes: int = 8 << 20  # of each view
    send_seconds: float = 10.0  # that a socket may take no bytes
    progress_seconds: float = 5.0
    resume_seconds: float = 120.0  # that changes are kept for subscribers that were cut off
    max_snapshot_bytes: int = 1 << 30  # of Arrow, on disk while it is sent
    max_snapshot_seconds: float = 60.0
    max_snapshots: int = 2  # that are read at once
    threads: int = 4


def progress_of(snapshot: Snapshot, topics: TopicNames, view: str, page: Page) -> Message:
    """Return the progress at the head, where a page ends."""
    names = topics.of(snapshot, view, page.token.version)
    position = position_of(page.position, lambda stream: names.get(stream, stream))
    return progress(page.token, position, page.watermark_us)


class Hub:
    """The shared reader of one view. For one event loop; `begin` it first."""

    def __init__(
        self,
        view: str,
        store: Store,
        commits: Signal,
        topics: TopicNames,
        pool: Executor,
        leases: Leases,
        limits: FollowLimits,
    ) -> None:
        self.view = view
        self.leases = leases
        self.ring: Ring
        self.token: Token  # up to where it has read
        self.failure: HeadraceError | None = None
        self.is_over = False
        self._store = store
        self._commits = commits
        self._topics = topics
        self._pool = pool
        self._limits = limits
        self._shapes: Counter[Shape] = Counter()
        self._added = asyncio.Event()
        self._subscribers: set[object] = set()
        self._left_at = time.monotonic()

    @property
    def subscribers(self) -> int:
        """How many subscribers it has."""
        return len(self._subscribers)

    def enter(self, subscriber: object) -> None:
        """Note that a subscriber is there."""
        self._subscribers.add(subscriber)

    def leave(self, subscriber: object) -> None:
        """Note that a subscriber has left."""
        self._subscribers.discard(subscriber)
        self._left_at = time.monotonic()

    def want(self, shape: Shape) -> None:
        """Encode a shape from the next page on."""
        self._shapes[shape] += 1

    def want_no_more(self, shape: Shape) -> None:
        """Encode a shape no longer, if nobody else wants it."""
        self._shapes[shape] -= 1
        if self._shapes[shape] <= 0:
            del self._shapes[shape]

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run what reads the store, or takes its time, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def begin(self) -> None:
        """Follow the view from the last commit on. TokenRefused: there is no such view."""
        self.token = await self.in_thread(self.leases.begin)
        self.ring = Ring(self.token, max_bytes=self._limits.ring_bytes)

    async def run(self) -> None:
        """Read until nobody has subscribed for a while. Sets `failure` where it cannot go on."""
        try:
            await self._run()
        except HeadraceError as error:
            self._fail(error)
        except Exception as error:
            # Else its subscribers would wait for what never comes.
            logger.exception("%s: its changes cannot be sent", self.view)
            failure = EngineError(
                f"view {self.view}: its changes cannot be sent ({type(error).__name__}); the "
                f"engine's log has the details"
            )
            failure.__cause__ = error
            self._fail(failure)
        finally:
            self.is_over = True

    def _fail(self, failure: HeadraceError) -> None:
        """Let all subscribers end for a reason."""
        self.failure = failure
        self._wake()

    async def _run(self) -> None:
        tries = 0
        while not self._is_left():
            count = self._commits.count
            try:
                while not await self._read_page():
                    pass
                tries = 0
            except TokenRefused:
                raise
            except StoreError as error:
                tries += 1
                logger.warning("%s: its changes cannot be read: %s", self.view, error)
                if tries >= _MAX_TRIES:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            await self._commits.after(count, timeout_s=self._limits.progress_seconds)

    def _is_left(self) -> bool:
        idle_seconds = time.monotonic() - self._left_at
        return not self._subscribers and idle_seconds > self._limits.resume_seconds

    async def _read_page(self) -> bool:
        """Add what follows to the ring; return whether that is all for now."""
        shapes = list(self._shapes)
        items, token, at_head = await self.in_thread(lambda: self._read(shapes))
        self.token = token
        for item in items:
            self.ring.append(item)
        self._wake()
        return at_head

    def _read(self, shapes: list[Shape]) -> tuple[list[Item], Token, bool]:
        with self._store.open() as snapshot:
            page = snapshot.changes(
                self.view,
                self.token,
                max_rows=self._limits.page_rows,
                max_bytes=self._limits.page_bytes,
            )
            told = progress_of(snapshot, self._topics, self.view, page) if page.at_head else None
        self.leases.move(page.token)
        items: list[Item] = []
        if page.reset:
            items.append(Item(page.token, reset=True))
        elif page.rows.num_rows:
            item = Item(page.token, page.rows, page.relation)
            for shape in shapes:
                item.prepare(shape)
            items.append(item)
        if told is not None and not page.reset:
            items.append(Item(page.token, progress=told))
        return items, page.token, page.at_head

    def _wake(self) -> None:
        added, self._added = self._added, asyncio.Event()
        added.set()

    async def more(self, number: int) -> None:
        """Wait for the item of a number. Raises why the hub ended."""
        while self.ring.end <= number:
            if self.failure is not None:
                raise self.failure
            await self._added.wait()
