"""The buffer of a sender: records wait here in batches until the one who appends takes them.

Promises:
- Batches leave so that records of a partition keep the order in which they were put.
- A batch leaves when its first record has waited for `linger_s`, or when it is full; sooner while
  somebody waits for room or for the buffer to be empty, or when it is closed.
- Bytes count until their batch is released, and are at most `max_bytes`; a single record always
  finds room in an empty buffer.
- One taker at a time. It is gone when `take` returned None, and whoever puts something afterwards
  sees that in `taker`.
"""

import threading
import time
from collections import deque
from typing import NamedTuple

from headrace.consume.sending.outgoing import OutgoingBatch, Record
from headrace.errors import BufferFull, Unreachable, UsageError

__all__ = ["Buffer", "Waiting"]


class Waiting(NamedTuple):
    """What is in a buffer, with what is being appended."""

    records: int
    counted_bytes: int


class Buffer:
    """Batches of records, some open, some ready to be taken. Safe for several threads."""

    def __init__(self, *, linger_s: float, batch_bytes: int, max_bytes: int) -> None:
        self._linger_s = linger_s
        self._batch_bytes = batch_bytes
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._for_taker = threading.Condition(self._lock)
        self._for_others = threading.Condition(self._lock)
        # In the order they were begun, so the first is the first to be due.
        self._open: dict[tuple[str, int | None], OutgoingBatch] = {}
        self._ready: deque[OutgoingBatch] = deque()
        self._taken: OutgoingBatch | None = None
        self._by_key: dict[str, bool] = {}  # of open batches: how their topics are sent to
        self._counted_bytes = 0
        self._wait_for_room = 0
        self._closed = False
        self.taker: int | None = None

    def put(
        self, topic: str, partition: int | None, record: Record, size: int, *, block_s: float
    ) -> None:
        """Put a record that counts `size` bytes. BufferFull: no room for `block_s`. UsageError."""
        with self._lock:
            self._check_open()
            if not self._has_room(size):
                self._make_room(topic, size, block_s)
            batch = self._batch_for(topic, partition, size)
            # Counted first: an interrupt then leaves room unused a while, not a record uncounted.
            batch.counted_bytes += size
            self._counted_bytes += size
            batch.records.append(record)
            if batch.counted_bytes >= self._batch_bytes:
                self._make_ready((topic, partition))

    def begin_taking(self) -> bool:
        """Make this thread the taker, unless there is one."""
        with self._lock:
            if self.taker is None:
                self.taker = threading.get_ident()
            return self.taker == threading.get_ident()

    def take(self, idle_s: float) -> OutgoingBatch | None:
        """Return the next batch once there is one; the one taken before is done.

        None when there was nothing for `idle_s`, or nothing is left of a closed buffer: the taker
        is then no longer the taker.
        """
        with self._lock:
            if self._taken is not None:
                self._taken.is_done = True
                self._taken = None
                self._for_others.notify_all()
            give_up_s = time.monotonic() + idle_s
            while True:
                now_s = time.monotonic()
                # Also while others are ready: a busy topic must not keep a quiet one waiting.
                for place, batch in list(self._open.items()):
                    if batch.due_s > now_s and not self._wait_for_room and not self._closed:
                        break
                    self._make_ready(place)
                if self._ready:
                    self._taken = self._ready.popleft()
                    return self._taken
                if not self._open and (self._closed or now_s >= give_up_s):
                    self.taker = None
                    self._for_others.notify_all()
                    return None
                wake_s = next((batch.due_s for batch in self._open.values()), give_up_s)
                self._for_taker.wait(max(0, wake_s - now_s))

    def release(self, batch: OutgoingBatch) -> None:
        """Give back the room of a batch that was taken, and appended or not."""
        with self._lock:
            self._counted_bytes -= batch.counted_bytes
            self._for_others.notify_all()

    def drain(self, timeout_s: float | None) -> None:
        """Return once all that was put before is done. Unreachable: not within `timeout_s`."""
        with self._lock:
            for place in list(self._open):
                self._make_ready(place)
            last = self._ready[-1] if self._ready else self._taken
            if last is not None and not self._for_others.wait_for(lambda: last.is_done, timeout_s):
                raise Unreachable(
                    f"{last.topic}: {self._counted_bytes} bytes of records are not appended after "
                    f"{timeout_s:g} s. Nothing is dropped; flush again, and look why the log is "
                    f"slow."
                )

    def close(self) -> None:
        """Take no more; who waits for room gets UsageError."""
        with self._lock:
            self._closed = True
            self._for_taker.notify()
            self._for_others.notify_all()

    def wait_for_end(self) -> None:
        """Return once a closed buffer is empty and has no taker."""
        with self._lock:
            self._for_others.wait_for(lambda: self.taker is None)

    def waiting(self) -> Waiting:
        """Return what is in the buffer now."""
        with self._lock:
            taken = [self._taken] if self._taken is not None else []
            batches = [*self._open.values(), *self._ready, *taken]
            return Waiting(sum(len(batch.records) for batch in batches), self._counted_bytes)

    # What follows needs the lock.

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("This sender is closed, and the record was not sent; make a new one.")

    def _has_room(self, size: int) -> bool:
        return self._counted_bytes == 0 or self._counted_bytes + size <= self._max_bytes

    def _make_room(self, topic: str, size: int, block_s: float) -> None:
        self._wait_for_room += 1
        self._for_taker.notify()
        try:
            self._for_others.wait_for(lambda: self._has_room(size) or self._closed, block_s)
        finally:
            self._wait_for_room -= 1
        self._check_open()
        if not self._has_room(size):
            raise BufferFull(
                f"{topic}: no room for {size} bytes after {block_s:g} s: {self._counted_bytes} of "
                f"{self._max_bytes} bytes wait for the log. The record was not sent; send it "
                f"later, and look why the log is slow. For bursts raise buffer_bytes."
            )

    def _batch_for(self, topic: str, partition: int | None, size: int) -> OutgoingBatch:
        if not self._open:
            self._by_key.clear()
        by_key = partition is None
        if self._by_key.setdefault(topic, by_key) != by_key:
            # A key may lead to a partition that is named now: what was put before goes before.
            for place in [place for place in self._open if place[0] == topic]:
                self._make_ready(place)
            self._by_key[topic] = by_key
        place = (topic, partition)
        batch = self._open.get(place)
        if batch is not None and batch.counted_bytes + size > self._batch_bytes:
            self._make_ready(place)
            batch = None
        if batch is None:
            if not self._open:
                self._for_taker.notify()  # or it would sleep past the time this one is due
            batch = OutgoingBatch(topic, partition, time.monotonic() + self._linger_s)
            self._open[place] = batch
        return batch

    def _make_ready(self, place: tuple[str, int | None]) -> None:
        self._ready.append(self._open.pop(place))
        self._for_taker.notify()
