"""Compaction of a partition: of every key the newest record stays, and older ones go.

Sealed segments are *clean* up to the first one that compaction has not been through: among them
every key has one record at most. The others are *dirty*. A pass takes these steps, as the only one
of its partition (the lock file `compacting`):

1. Remove what a dead compactor left.
2. Decide: a pass is worth it when the dirty segments have DIRTY_RATIO of the bytes, so that its
   cost grows with what was appended and not with what is kept, or when a tombstone's time has come.
3. Read the dirty segments, oldest first, up to MAX_PASS_KEYS and MAX_PASS_KEY_BYTES and at least
   one: the newest record of each of their keys. The rest waits for the next pass.
4. From the oldest on, leave out of every segment what survivors.py says, and write the rest to new
   segments, joining neighbours up to `segment_bytes`. What would not change stays as it is.
5. Swap each new segment in as soon as it is whole and synced: under the partition's lock rename it
   (listing.py) and count in `ends`; then remove the files whose place it took.

Promises:
- Appends and reads wait for step 5 only, which is a rename. The last segment is never looked at.
- What stays keeps offset, arrival, order and content; every offset stays covered.
- Death at any moment leaves old or new segments, each whole. They are swapped in from the oldest
  on, so what is clean is clean after a death too.
- Retention goes first: a new segment that covers what it has removed is thrown away.
- Damage is raised, and nothing that it could concern is removed.
"""

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from headrace import faults
from headrace.errors import LogError
from headrace.log.base import Partition
from headrace.log.embedded.appender import Appender
from headrace.log.embedded.ends import Ends, read_ends, write_ends
from headrace.log.embedded.files import disk_errors, sync_folder, try_locked
from headrace.log.embedded.format import NEVER
from headrace.log.embedded.listing import SegmentFile, compacted_path, list_files, list_replaced
from headrace.log.embedded.segments import lost_file
from headrace.log.embedded.upkeep.rewriting import (
    UNFINISHED,
    NewSegment,
    Source,
    earliest_until,
    read_segment,
)
from headrace.log.embedded.upkeep.survivors import Newest, choose, merge_newest, newest_of
from headrace.wording import counted

__all__ = ["CHEAP_BYTES", "Compactor"]

# Kafka's min.cleanable.dirty.ratio, and its default.
DIRTY_RATIO = 0.5
# A pass needs some 100 bytes of memory for each key, besides one segment.
MAX_PASS_KEYS = 1 << 20
MAX_PASS_KEY_BYTES = 64 << 20
#: What an append may compact on its way: 10 ms, or 150 if its batches have one record each.
CHEAP_BYTES = 1 << 20

logger = logging.getLogger("headrace.log")


class _OvertakenError(Exception):
    """Retention, or a deletion, took what the pass is about: there is nothing to do."""


class _Plan(NamedTuple):
    """What a pass looks at: clean segments, then dirty ones."""

    clean: Sequence[Source]
    dirty: Sequence[Source]


@dataclass(frozen=True)
class Compactor:
    """What compacts one partition. Safe for several threads: all but one do nothing."""

    folder: Path
    partition: Partition
    appender: Appender
    clock: Callable[[], int]
    sync: bool
    segment_bytes: int
    tombstone_ms: int

    def run(self, *, always: bool = False, max_bytes: int | None = None) -> int:
        """Do one pass if it is worth it, and return how many records it removed.

        With `always`, any dirty segment makes it worth it; with `max_bytes` it is not if it has to
        look at more. LogDamaged, DiskFull, LogError.
        """
        with try_locked(self.folder / "compacting") as lock:
            if lock is None:
                return 0
            try:
                with disk_errors(self.folder):
                    return self._run(lock, always=always, max_bytes=max_bytes)
            except LogError:
                if self.is_current(lock):
                    raise
                return 0  # the topic was deleted meanwhile

    def _run(self, lock: int, *, always: bool, max_bytes: int | None) -> int:
        try:
            self._remove_leftovers()
            plan = self._decide(self._ends(), always=always, max_bytes=max_bytes)
            return 0 if plan is None else _Pass(self, plan, lock).carry_out()
        except (_OvertakenError, FileNotFoundError):
            # Retention took a segment. The next pass tells of one that was lost: it is not listed.
            return 0

    def is_current(self, lock: int) -> bool:
        """Whether a lock is still that of the folder, which may be deleted and made anew."""
        try:
            return os.path.samestat(os.fstat(lock), (self.folder / "compacting").stat())
        except FileNotFoundError:
            return False

    def _ends(self) -> Ends:
        ends = read_ends(self.folder / "ends")
        if ends is None:
            raise _OvertakenError  # whoever appends or reads next finds them again
        return ends

    def _remove_leftovers(self) -> None:
        for unfinished in self.folder.glob(f"*{UNFINISHED}"):
            unfinished.unlink(missing_ok=True)
        if replaced := list_replaced(self.folder):
            with self.appender.held():
                self.count_swap()
            self.remove(replaced)

    def count_swap(self) -> None:
        """Make readers list the files anew. Needs the partition's lock."""
        ends = self._ends()
        write_ends(self.folder / "ends", ends._replace(compactions=ends.compactions + 1))

    def remove(self, replaced: Iterable[SegmentFile]) -> None:
        """Remove files whose place was taken; what took it is on the disk first."""
        if self.sync:
            sync_folder(self.folder)
        for file in replaced:
            file.path.unlink(missing_ok=True)  # retention may be faster

    def _decide(self, ends: Ends, *, always: bool, max_bytes: int | None) -> _Plan | None:
        sources = self._sealed(ends)
        clean = [source for source in sources if source.clean]
        dirty = sources[len(clean) :]
        dirty_bytes = sum(source.bytes for source in dirty)
        all_bytes = sum(source.bytes for source in sources)
        if max_bytes is not None and all_bytes > max_bytes:
            return None
        if dirty and (always or dirty_bytes >= DIRTY_RATIO * all_bytes):
            return _Plan(clean, dirty)
        now_us = self.clock()
        if any(earliest_until(source.file, self.partition) <= now_us for source in clean):
            return _Plan(clean, [])
        return None

    def _sealed(self, ends: Ends) -> list[Source]:
        """Return the segments that no append goes to any more."""
        files = [file for file in list_files(self.folder) if file.base_offset >= ends.first]
        sources: list[Source] = []
        clean = True
        for file, following in pairwise(files):
            if following.base_offset > ends.acknowledged.segment:
                break
            if file.end_offset not in (None, following.base_offset):
                raise lost_file(self.folder, self.partition, file.end_offset or 0)
            clean = clean and file.end_offset is not None
            size = file.path.stat().st_size
            sources.append(Source(file, following.base_offset, size, clean))
        return sources


class _Pass:
    """Steps 3 to 5."""

    def __init__(self, compactor: Compactor, plan: _Plan, lock: int) -> None:
        self._compactor = compactor
        self._plan = plan
        self._lock = lock
        self._new: NewSegment | None = None
        self._removed = 0

    def carry_out(self) -> int:
        """Return how many records were removed."""
        newest, taken = self._read_newest()
        sources = [*self._plan.clean, *taken]
        try:
            for source in sources:
                self._rewrite(source, newest)
            self._swap()
        finally:
            if self._new is not None:
                self._new.discard()
        logger.info(
            "%s: compacted %d bytes in %s, %s went",
            self._compactor.partition,
            sum(source.bytes for source in sources),
            counted(len(sources), "segment"),
            counted(self._removed, "record"),
        )
        return self._removed

    def _read_newest(self) -> tuple[Newest | None, Sequence[Source]]:
        """Return the newest records of the dirty segments that the pass takes, and these."""
        parts: list[Newest] = []
        keys = key_bytes = 0
        for source in self._plan.dirty:
            _, stored = read_segment(source, self._compactor.partition)
            part = newest_of(stored.select(["key", "offset"]).combine_chunks())
            keys, key_bytes = keys + len(part.keys), key_bytes + part.keys.nbytes
            if parts and (keys > MAX_PASS_KEYS or key_bytes > MAX_PASS_KEY_BYTES):
                break
            parts.append(part)
        return (merge_newest(parts) if parts else None), self._plan.dirty[: len(parts)]

    def _rewrite(self, source: Source, newest: Newest | None) -> None:
        """Do step 4 for one segment."""
        compactor = self._compactor
        now_us = compactor.clock()
        if newest is None and earliest_until(source.file, compactor.partition) > now_us:
            return self._swap()
        header, stored = read_segment(source, compactor.partition)
        until_us = min(now_us + compactor.tombstone_ms * 1000, NEVER - 1)
        kept = choose(
            stored.combine_chunks(),
            newest,
            clean=source.clean,
            now_us=now_us,
            until_us=until_us,
        )
        if source.clean and not kept.removed and 2 * source.bytes >= compactor.segment_bytes:
            return self._swap()
        if self._new is not None and self._new.is_full(kept, compactor.segment_bytes):
            self._swap()
        if self._new is None:
            self._new = NewSegment(compactor.folder, header)
        self._new.add(source, kept)
        return None

    def _swap(self) -> None:
        """Do step 5, if there is something to swap in."""
        new, compactor = self._new, self._compactor
        if new is None:
            return
        if not new.changes_nothing:
            new.finish(sync=compactor.sync)
            faults.reach("log_before_swap")
            passes = 1 + max(source.file.passes for source in new.sources)
            final = compacted_path(compactor.folder, new.base_offset, new.end_offset, passes)
            with compactor.appender.held():
                ends = read_ends(compactor.folder / "ends")
                current = compactor.is_current(self._lock)
                if not current or ends is None or ends.first > new.base_offset:
                    raise _OvertakenError
                new.path.rename(final)
                faults.reach("log_in_swap")
                compactor.count_swap()
            compactor.remove(source.file for source in new.sources)
            self._removed += new.removed
        new.discard()
        self._new = None
