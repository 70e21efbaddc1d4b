"""Appending to a partition, from any number of threads and processes.

An append takes these steps; `_lock` is a mutex of this process and a lock of the folder in one.

1. Under the lock: catch up with what other processes wrote, and with what the dead left
   (follower.py).
2. Refuse or answer what a producer sent before.
3. Roll if the segment is full: sync the old one, acknowledge it, announce the new one in `ends`,
   then make it. Whoever finds a segment announced but not made, makes it.
4. Write the batch, then the new written end. Release the lock.
5. Sync, unless another thread or process has acknowledged this batch by now: one sync serves all
   that was written before it began.
6. Under the lock: acknowledge what the sync covered, if nothing was cut meanwhile.
With `acks=1` an append returns after step 4, and background.py does the rest.

After a failure:
- in 4: the bytes are cut again; nobody saw them.
- in 5: what the disk holds is unknown, and a second sync could claim success for lost pages. So all
  that is not acknowledged is cut, and everyone who waits for it raises.
- death anywhere: the next append finds the batch whole, and adopts it, or torn, and cuts it.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from headrace import faults
from headrace.errors import LogError, ProducerFenced
from headrace.log.base import Partition, Producer
from headrace.log.checks import is_stored, stored_before
from headrace.log.embedded.ends import Ends, Mark, read_ends, write_ends
from headrace.log.embedded.files import OpenFile, disk_errors, locked
from headrace.log.embedded.follower import Follower
from headrace.log.embedded.format import decode_batch_header, encode_batch
from headrace.log.embedded.listing import list_files, list_replaced, list_segments, segment_path
from headrace.log.embedded.segments import lost_file
from headrace.log.embedded.tail import Tail
from headrace.log.embedded.upkeep.retention import first_kept

__all__ = ["Appender", "Written"]

PATIENCE_S = 0.5


class Written(NamedTuple):
    """A batch that is written but perhaps not yet acknowledged: `[start, end.offset)`."""

    start: int
    end: Mark
    file: OpenFile
    cuts: int
    acknowledged: bool
    duplicate: bool
    rolled: bool = False


class Appender:
    """The writing side of one partition. Safe for several threads."""

    def __init__(
        self,
        folder: Path,
        partition: Partition,
        *,
        clock: Callable[[], int],
        sync: bool,
        segment_bytes: int,
        decided: Callable[[int], bool],
    ) -> None:
        self._folder = folder
        self._partition = partition
        self._clock = clock
        self._sync = sync
        self._segment_bytes = segment_bytes
        self._ends_path = folder / "ends"
        self._mutex = threading.Lock()
        self._sync_mutex = threading.Lock()
        self._follower = Follower(folder, partition, sync=sync, decided=decided)
        self._settled = False
        self._past_end: tuple[tuple[int, int], float] | None = None
        self._before: Ends  # while `held`: the ends, as the last plain append left them
        self._failure: OSError | None = None

    def ends(self) -> Ends:
        """Return the partition's ends.

        The first call of a process looks for what others left unacknowledged, such as batches that
        were synced before a power loss took the newest ends: those become visible again. Later
        ones look when bytes stand past either end for PATIENCE_S, since who wrote them may be dead.
        """
        ends = read_ends(self._ends_path)
        if ends is not None:
            looks_well = not self._is_left(ends) if self._settled else self._is_settled(ends)
            if looks_well:
                self._settled = True
                return ends
        return self.caught_up_ends()

    def caught_up_ends(self) -> Ends:
        """Return the partition's ends once all that is written or decided is acknowledged."""
        caught_up = self._catch_up()
        return self._check_kept(read_ends(self._ends_path), caught_up)

    def newest_of(self, producer_id: str) -> Producer | None:
        """Return a producer as it last appended here, acknowledged when this returns."""
        with self._lock(), disk_errors(self._folder):
            written = self._up_to(self._follower.catch_up(), duplicate=False)
            newest = self._follower.tail.producers.get(producer_id)
        self.make_durable(written)
        return newest

    def _catch_up(self) -> Written:
        """Acknowledge all that is written, whoever wrote it."""
        with self._lock(), disk_errors(self._folder):
            written = self._up_to(self._follower.catch_up(), duplicate=False)
        self.make_durable(written)
        return written

    def write(
        self,
        payload: Any,
        count: int,
        producer: Producer | None,
        *,
        arrival_us: int | None = None,
    ) -> Written:
        """Do steps 1 to 4 for one batch. ProducerFenced, DiskFull, LogDamaged.

        It arrives now, unless it is said when it did; never before what is there.
        """
        with self._lock(), disk_errors(self._folder):
            ends = self._follower.catch_up()
            if producer is not None and self._was_stored(producer, self._follower.tail):
                return self._up_to(ends, duplicate=True)
            start, rolled, ends = self._store(ends, payload, count, producer, arrival_us=arrival_us)
            mark = self._follower.tail.mark
            acknowledged = ends.acknowledged if self._sync else mark
            try:
                after = ends._replace(acknowledged=acknowledged, written=mark)
                after = write_ends(self._ends_path, after)
            except OSError:
                self._follower.file.cut(ends.written.position)
                raise
            return self._up_to(after, duplicate=False)._replace(start=start, rolled=rolled)

    def _store(
        self,
        ends: Ends,
        payload: Any,
        count: int,
        producer: Producer | None,
        transaction: int | None = None,
        arrival_us: int | None = None,
    ) -> tuple[int, bool, Ends]:
        """Write a batch; return its start, whether it begins a segment, and the ends before it."""
        tail = self._follower.tail
        start = tail.mark.offset
        data = encode_batch(
            payload,
            count=count,
            base_offset=start,
            arrival_us=max(
                self._clock() if arrival_us is None else arrival_us, tail.last_arrival_us
            ),
            producer=producer,
            transaction=transaction,
        )
        # A segment takes at least one batch, however large that is.
        full = tail.mark.position + len(data) > self._segment_bytes
        if rolls := full and start > tail.mark.segment:
            self._sync_for_roll(ends)
            ends = self._follower.roll(ends)
        self._write_batch(data, tail.mark.position)
        tail.note(decode_batch_header(memoryview(data), 0), producer)
        return start, rolls, ends

    # What a transaction (transactions.py) is made of; `held` surrounds the others.

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the partition's lock, its tail caught up with."""
        with self._lock(), disk_errors(self._folder):
            self._before = self._follower.catch_up()
            yield

    def check_producer(self, producer: Producer | None) -> None:
        """Refuse a producer that was replaced, or whose batch is there already."""
        if producer is not None and self._was_stored(producer, self._follower.tail):
            raise stored_before(self._partition, producer)

    def write_held(
        self, transaction: int, payload: Any, count: int, producer: Producer | None
    ) -> Written:
        """Write one batch past the ends, where nobody looks."""
        start, rolled, self._before = self._store(
            self._before, payload, count, producer, transaction
        )
        # As `acknowledge_held` will leave it, unless the transaction fails and this is not used.
        mark = self._follower.tail.mark
        after = self._before._replace(acknowledged=mark, written=mark)
        return self._up_to(after, duplicate=False)._replace(start=start, rolled=rolled)

    def sync_held(self) -> None:
        """Return once the batch is on the disk; then so is all that others wrote before it."""
        if self._sync:
            try:
                self._follower.file.sync()
            except OSError:
                # What others wrote and did not sync may be lost with it.
                self._cut_unacknowledged(self._before)
                raise

    def take_back_held(self) -> None:
        """Cut the batch again."""
        path = segment_path(self._folder, self._before.written.segment)
        self._follower.forget()
        os.truncate(path, self._before.written.position)

    def acknowledge_held(self) -> None:
        """Show the batch, and all before it, to readers."""
        mark = self._follower.tail.mark
        write_ends(self._ends_path, self._before._replace(acknowledged=mark, written=mark))

    def settle(self) -> None:
        """Acknowledge what a dead process left, and sync the ends."""
        self._catch_up()
        if self._sync:
            with disk_errors(self._ends_path):
                OpenFile(self._ends_path).sync()

    def make_durable(self, written: Written) -> None:
        """Do steps 5 and 6: return once what was written is acknowledged. DiskFull, LogError."""
        self._settled = True  # what others left is caught up with, and acknowledged with this
        if written.acknowledged:
            return
        with self._sync_mutex:  # threads that wait here find their batch acknowledged afterwards
            ends = self._check_kept(read_ends(self._ends_path), written)
            if ends.acknowledged.offset >= written.end.offset:
                return
            # A roll syncs and acknowledges the segment it leaves, so this is still the last one.
            assert ends.written.segment == written.end.segment
            faults.reach("log_before_sync")
            if self._sync:
                with disk_errors(written.file.path):
                    try:
                        written.file.sync()
                    except OSError:
                        self._abandon(ends.cuts)
                        raise
            faults.reach("log_before_acknowledge")
            with self._lock(), disk_errors(self._ends_path):
                now = self._check_kept(read_ends(self._ends_path), written)
                acknowledged = max(now.acknowledged, ends.written)
                write_ends(self._ends_path, now._replace(acknowledged=acknowledged))

    def expire(self, *, before_us: int | None, max_bytes: int | None) -> None:
        """Remove the oldest segments as retention says; the last one stays, empty if it must.

        A segment goes when all of it arrived before `before_us`, or when those after it have
        `max_bytes` by themselves. Readers lose the offsets first, then the files go.
        """
        with self._lock(), disk_errors(self._folder):
            ends = self._follower.catch_up()
            if before_us is not None and self._follower.tail.last_arrival_us < before_us:
                ends = self._seal(ends)
            files = [file for file in list_files(self._folder) if file.base_offset >= ends.first]
            if files[0].base_offset != ends.first:
                raise lost_file(self._folder, self._partition, ends.first)
            first = first_kept(self._partition, files, before_us=before_us, max_bytes=max_bytes)
            if first > ends.first:
                ends = write_ends(self._ends_path, ends._replace(first=first))
                if self._sync:
                    # Or a power loss could make what was removed look lost.
                    OpenFile(self._ends_path).sync()
                faults.reach("log_before_removal")
            # Also what a process left that died between the two.
            for file in [*list_files(self._folder), *list_replaced(self._folder)]:
                if file.base_offset < ends.first:
                    file.path.unlink(missing_ok=True)  # a compactor may be faster

    def seal(self) -> None:
        """Begin a new segment, unless the last one is empty."""
        with self._lock(), disk_errors(self._folder):
            self._seal(self._follower.catch_up())

    def _seal(self, ends: Ends) -> Ends:
        if self._follower.tail.mark.offset == self._follower.tail.mark.segment:
            return ends
        self._sync_for_roll(ends)
        return self._follower.roll(ends)

    def exists(self) -> bool:
        """Whether the partition is still there: its topic may have been deleted."""
        return self._ends_path.exists()

    def close(self) -> None:
        """Let go of the open file."""
        with self._mutex:
            self._follower.forget()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with self._mutex, locked(self._folder / "lock"):
            if self._failure is not None:
                raise LogError(
                    f"{self._folder}: a sync failed before, and what it left could not be cut "
                    f"({self._failure}). What was acknowledged is safe; look at the disk, then "
                    f"open the log anew."
                ) from self._failure
            try:
                yield
            except ProducerFenced:
                raise
            except BaseException:
                # Whatever went wrong, memory may be ahead of the file: look again next time.
                self._follower.forget()
                raise

    def _up_to(self, ends: Ends, *, duplicate: bool) -> Written:
        level = ends.acknowledged == ends.written
        file = self._follower.file
        return Written(ends.written.offset, ends.written, file, ends.cuts, level, duplicate)

    def _is_settled(self, ends: Ends) -> bool:
        try:
            bases = list_segments(self._folder)
            return (
                ends.acknowledged == ends.written
                and bool(bases)
                and bases[-1] == ends.written.segment
                and segment_path(self._folder, bases[-1]).stat().st_size == ends.written.position
            )
        except FileNotFoundError:
            return False  # retention or a deletion was faster: look again under the lock

    def _is_left(self, ends: Ends) -> bool:
        """Whether the same bytes have stood unwritten or unacknowledged for a while."""
        try:
            size = segment_path(self._folder, ends.written.segment).stat().st_size
        except FileNotFoundError:
            return False
        if size <= ends.written.position and ends.acknowledged == ends.written:
            self._past_end = None
            return False
        found = (ends.generation, size)
        if self._past_end is None or self._past_end[0] != found:
            self._past_end = (found, time.monotonic())
        return time.monotonic() - self._past_end[1] > PATIENCE_S

    def _was_stored(self, producer: Producer, tail: Tail) -> bool:
        where = f"{self._partition}@{tail.mark.offset}"
        return is_stored(where, producer, tail.producers.get(producer.id))

    def _sync_for_roll(self, ends: Ends) -> None:
        if self._sync:
            try:
                self._follower.file.sync()
            except OSError:
                self._cut_unacknowledged(ends)
                raise

    def _write_batch(self, data: bytes, position: int) -> None:
        file = self._follower.file
        # In two halves, so that the fault point leaves a torn batch like a crash does: 2 µs.
        view = memoryview(data)
        half = len(data) // 2
        try:
            file.write(view[:half], position)
            faults.reach("log_torn")
            file.write(view[half:], position + half)
        except OSError:
            file.cut(position)
            raise

    def _check_kept(self, ends: Ends | None, written: Written) -> Ends:
        if ends is None or ends.cuts != written.cuts:
            raise LogError(
                f"{self._partition}@{written.start}: a sync failed, or the file `ends` was lost, "
                f"before this batch was acknowledged; it may be stored, or cut. A producer that "
                f"appends it once more settles that; without one, look before you do."
            )
        return ends

    def _abandon(self, cuts: int) -> None:
        """After a failed sync: cut what is not acknowledged, unless someone did so already."""
        with self._lock():
            ends = read_ends(self._ends_path)
            if ends is not None and ends.cuts == cuts:
                self._cut_unacknowledged(ends)

    def _cut_unacknowledged(self, ends: Ends) -> None:
        path = segment_path(self._folder, ends.acknowledged.segment)
        self._follower.forget()
        # The new number goes first: should the cut fail, nobody acknowledges these bytes either.
        cut = ends._replace(cuts=ends.cuts + 1, written=ends.acknowledged)
        self._before = write_ends(self._ends_path, cut)
        try:
            os.truncate(path, ends.acknowledged.position)
        except OSError as error:
            self._failure = error
            raise
