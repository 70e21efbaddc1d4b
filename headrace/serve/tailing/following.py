"""Follow a topic: messages with its records as they come, for as long as the reader takes them.

Promises:
- Every record after the position once, in messages that each say where the next one begins.
- A reader is never ahead of what it took: the next page is read when the last one was sent, so a
  slow reader costs one page of memory and holds up nobody.
- When nothing comes, `progress` every `progress_seconds`.
"""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from headrace.errors import EngineBusy
from headrace.log.base import Log
from headrace.serve.message import Message, encode
from headrace.serve.reading.positions import Position, position_text
from headrace.serve.tailing.pages import MAX_PAGE_RECORDS, Page, read_after
from headrace.serve.tailing.watching import TopicWatch

__all__ = ["TailLimits", "Tails"]

#: Pages that are read at once, for all followers.
_READERS = 4

Result = TypeVar("Result")


@dataclass(frozen=True)
class TailLimits:
    """How many follow topics at once, how long one message may take, how often one comes."""

    max_followers: int = 100
    send_seconds: float = 10.0
    progress_seconds: float = 5.0


class Tails:
    """Those who follow topics of a log."""

    def __init__(self, log: Log, limits: TailLimits | None = None) -> None:
        self.log = log
        self.limits = limits or TailLimits()
        self.followers = 0
        self._watch = TopicWatch(log)
        self._limiter = anyio.CapacityLimiter(_READERS)

    async def read(self, work: Callable[[], Result]) -> Result:
        """Return what work gives, done in one of a few threads."""
        return await run_sync(work, limiter=self._limiter)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Take the place of one follower. EngineBusy: there is none."""
        if self.followers >= self.limits.max_followers:
            raise EngineBusy(
                f"{self.limits.max_followers} follow topics already, which is the most; ask again "
                f"when one of them has left"
            )
        self.followers += 1
        try:
            yield
        finally:
            self.followers -= 1

    async def messages(self, topic: str, start: Page) -> AsyncGenerator[list[Message]]:
        """Yield a page and what comes after it. TopicNotFound, PositionLost and others end it."""
        position = start.position

        def read() -> Message | None:
            nonlocal position
            page = read_after(self.log, topic, position, MAX_PAGE_RECORDS)
            position = page.position
            # Made here, not in the event loop, which a large page would hold up.
            return _records(page) if page.records else None

        with self._watch.following(topic) as watched:
            if start.records:
                yield [_records(start)]
            del start  # it may be large
            yield [_message("progress", position)]
            while True:
                count = watched.grown.count
                if watched.is_past(position) and (found := await self.read(read)) is not None:
                    yield [found]
                elif await watched.grown.after(count, timeout_s=self.limits.progress_seconds) == (
                    count
                ):
                    yield [_message("progress", position)]


def _records(page: Page) -> Message:
    return _message("records", page.position, records=page.records)


def _message(type_: str, position: Position, **more: Any) -> Message:
    token = position_text(position)
    return encode(type_, token, {**more, "token": token})
