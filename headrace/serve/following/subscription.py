"""One subscriber: all rows at a commit, or what followed its token, then what all get.

1. It begins with a snapshot (`reset`, rows, progress), unless it has a token.
2. Behind its token it reads the store by itself until the hub's ring has all that follows.
3. From there on it takes the items of the ring. It stands behind a whole commit then, so an item
   that it has a part of is cut at that commit: no gap, no repeat.

A version with other columns begins with 1 again.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.errors import TooSlow
from headrace.ledger.following import Page, Token
from headrace.serve.following import messages
from headrace.serve.following.hub import FollowLimits, Hub, progress_of
from headrace.serve.following.ring import Item, place
from headrace.serve.following.shapes import Shape, shape_of
from headrace.serve.following.spool import Spool
from headrace.serve.message import Message
from headrace.serve.reading.positions import Position
from headrace.serve.reading.views import Views
from headrace.store.asking import Standing
from headrace.store.base import Store

__all__ = ["Subscription", "Wanted"]

_WRITE_BYTES = 64 << 10  # messages are sent together up to here, which a socket takes at once


@dataclass(frozen=True)
class Wanted:
    """What a subscriber asks for. Without a token it begins with rows, or where the view stands."""

    after: Token | None = None
    where: Sequence[str] = ()
    columns: Sequence[str] = ()
    with_rows: bool = True


@dataclass(frozen=True)
class _Begun:
    """The rows that a subscriber begins with."""

    standing: Standing
    shape: Shape
    position: Position
    spool: Spool | None


class Subscription:
    """What one subscriber is sent. `begin` raises what a request is refused with."""

    def __init__(
        self,
        hub: Hub,
        store: Store,
        views: Views,
        limits: FollowLimits,
        snapshots: asyncio.Semaphore,
        wanted: Wanted,
    ) -> None:
        self._hub = hub
        self._store = store
        self._views = views
        self._limits = limits
        self._snapshots = snapshots
        self._wanted = wanted
        self._token = wanted.after
        self._shape: Shape | None = None
        self._spool: Spool | None = None
        self._first: list[Message] = []
        self._behind_rows: Message
        self._ends = False

    async def begin(self) -> None:
        """Read what comes first. ViewNotFound, UsageError, TokenRefused, TokenTooOld."""
        # Before anything is read: what follows is kept from here on.
        self._hub.leases.pin(self, self._hub.token if self._token is None else self._token)
        if self._token is not None:
            self._first = await self._read_on()
            return
        async with self._snapshots:
            began = await self._hub.in_thread(self._read_rows)
        self._spool, self._token = began.spool, began.standing.token
        self._choose(began.shape)
        self._hub.leases.pin(self, self._token)
        self._first = [messages.reset(self._hub.view, began.standing.version, began.shape)]
        self._behind_rows = messages.progress(
            self._token, began.position, began.standing.watermark_us
        )
        if self._spool is None:
            self._first.append(self._behind_rows)

    async def messages(self) -> AsyncGenerator[list[Message]]:
        """Yield what is sent, in its order: messages that are there already are yielded together.

        TooSlow, TokenRefused, TokenTooOld, UsageError.
        """
        while True:
            first, self._first = self._first, []
            yield first
            if self._spool is not None:
                async for message in self._rows(self._spool):
                    yield [message]
            assert self._token is not None
            while not self._ends and not self._hub.ring.covers(self._token):
                yield await self._read_on()
            self._hub.leases.pin(self, None)
            if not self._ends:
                async for together in self._shared():
                    yield together
            # The columns are others now.
            self._ends, self._token = False, None
            await self.begin()

    def _read_rows(self) -> "_Begun":
        """Read all rows at the last commit. For a thread."""
        view = self._hub.view
        with self._store.open() as snapshot:
            standing = self._views.standing(snapshot, view)
            shape = shape_of(standing.relation, self._wanted.where, self._wanted.columns)
            position = self._views.position(snapshot, standing)
            spool = None
            if self._wanted.with_rows:
                spool = Spool(
                    snapshot,
                    view,
                    shape,
                    page_bytes=self._limits.page_bytes,
                    max_bytes=self._limits.max_snapshot_bytes,
                    max_seconds=self._limits.max_snapshot_seconds,
                )
        return _Begun(standing, shape, position, spool)

    async def _rows(self, spool: Spool) -> AsyncIterator[Message]:
        """Yield the rows of a snapshot; the last page has the token."""
        assert self._shape is not None
        assert self._token is not None
        shape, token, left = self._shape, self._token, spool.rows
        try:
            pages = spool.pages()
            while left:
                page: pa.Table = await self._hub.in_thread(lambda: next(pages))
                left -= page.num_rows
                yield await self._hub.in_thread(_encoding(page, shape, token, is_last=not left))
            if not spool.rows:
                yield messages.no_rows(token)
            yield self._behind_rows
        finally:
            self.close_spool()

    def _choose(self, shape: Shape) -> None:
        if self._shape is not None:
            self._hub.want_no_more(self._shape)
        self._shape = shape
        self._hub.want(shape)

    async def _read_on(self) -> list[Message]:
        """Read the next page by itself, behind the token."""
        token, shape = self._token, self._shape
        assert token is not None
        page, chosen, sent = await self._hub.in_thread(lambda: self._read_page(token, shape))
        self._token = page.token
        if page.reset:
            self._ends = True
            return []
        self._hub.leases.pin(self, page.token)
        if self._shape is None:
            self._choose(chosen)
        return sent

    def _read_page(self, token: Token, shape: Shape | None) -> tuple[Page, Shape, list[Message]]:
        """Return a page behind a token, and what is sent of it. For a thread."""
        with self._store.open() as snapshot:
            page = snapshot.changes(
                self._hub.view,
                token,
                max_rows=self._limits.page_rows,
                max_bytes=self._limits.page_bytes,
            )
            told: list[Message] = []
            if page.at_head:
                told = [progress_of(snapshot, self._views.topics, self._hub.view, page)]
        if shape is None:
            shape = shape_of(page.relation, self._wanted.where, self._wanted.columns)
        if page.reset:
            return page, shape, []
        found = shape.matching(page.rows)
        if found.num_rows:
            told = [messages.changes(found, shape, page.token, page.token.commit), *told]
        return page, shape, told

    async def _shared(self) -> AsyncIterator[list[Message]]:
        """Yield what all get, until the columns are others."""
        ring, start = self._hub.ring, self._token
        assert start is not None
        number = ring.after(start)
        stands_within = True  # an item, perhaps: it has had all up to the start
        while True:
            await self._hub.more(number)
            found: list[Message] = []
            size = 0
            while number < ring.end and size < _WRITE_BYTES:
                item = ring.get(number)
                if item is None:
                    raise TooSlow(
                        f"you are further behind than {self._limits.ring_bytes} bytes of changes; "
                        f"read faster, or choose fewer rows and columns. The token you have is "
                        f"good for a while."
                    )
                number += 1
                # The hub may come to the start only now, by several items.
                if place(item.token) <= place(start) and item.progress is None:
                    continue
                if place(item.token) < place(start):
                    continue
                if item.reset:
                    yield found
                    return
                if item.rows is None:
                    message = item.progress
                else:
                    message = await self._message(item, start.commit if stands_within else None)
                    stands_within = False
                self._token = item.token
                if message is not None:
                    found.append(message)
                    size += len(message.data)
            yield found

    async def _message(self, item: Item, commit: int | None) -> Message | None:
        """Return what a subscriber gets of an item, or of what is behind a commit."""
        shape = self._shape
        assert shape is not None
        if commit is None and shape in item.encoded:
            return item.encoded[shape]
        after = -1 if commit is None else commit
        return await self._hub.in_thread(lambda: item.encode_after(shape, after))

    def close_spool(self) -> None:
        """Forget the rows of a snapshot."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None

    def close(self) -> None:
        """Let go of all."""
        self.close_spool()
        self._hub.leases.pin(self, None)
        if self._shape is not None:
            self._hub.want_no_more(self._shape)
            self._shape = None


def _encoding(
    page: pa.Table, shape: Shape, token: Token, *, is_last: bool
) -> Callable[[], Message]:
    return lambda: messages.changes(page, shape, token if is_last else None, token.commit)
