"""Keeping up with the last segment of a partition, whoever writes to it.

All of this needs the partition's lock.

Promises:
- Whole batches past the written end are adopted: their writer died before it could say so.
- A torn one is cut, and only past the acknowledged end; so is one of a transaction that was not
  committed.
- A segment that was announced but not made, since its maker died, is made.
- Lost ends are found again in the last segment; what could be damage is then not cut but told.
"""

import secrets
from collections.abc import Callable
from pathlib import Path

from headrace.errors import LogDamaged
from headrace.log.base import Partition
from headrace.log.embedded.ends import Ends, Mark, read_ends, write_ends
from headrace.log.embedded.files import OpenFile, write_new_file
from headrace.log.embedded.format import encode_segment_header
from headrace.log.embedded.listing import list_segments, segment_path
from headrace.log.embedded.segments import damaged, map_file
from headrace.log.embedded.tail import Tail, holds_a_batch, load_tail, walk

__all__ = ["Follower", "make_segment"]


def make_segment(folder: Path, tail: Tail, *, sync: bool) -> int:
    """Make the segment that begins at the tail's offset and return its header's length."""
    header = encode_segment_header(
        tail.mark.offset, last_arrival_us=tail.last_arrival_us, producers=tail.producers
    )
    write_new_file(segment_path(folder, tail.mark.offset), header, sync=sync)
    return len(header)


class Follower:
    """The tail of a partition and the open file it is in."""

    def __init__(
        self, folder: Path, partition: Partition, *, sync: bool, decided: Callable[[int], bool]
    ) -> None:
        self._folder = folder
        self._decided = decided
        self._partition = partition
        self._sync = sync
        self._ends_path = folder / "ends"
        self._file: OpenFile | None = None
        self._tail: Tail | None = None
        self._cuts = 0

    @property
    def tail(self) -> Tail:
        """The tail, as the last `catch_up` left it."""
        assert self._tail is not None
        return self._tail

    @property
    def file(self) -> OpenFile:
        """The last segment, as the last `catch_up` left it."""
        assert self._file is not None
        return self._file

    def forget(self) -> None:
        """Make the next `catch_up` look at everything anew."""
        self._file = self._tail = None

    def catch_up(self) -> Ends:
        """Bring tail and ends level with the file, and return the ends. LogDamaged."""
        ends = read_ends(self._ends_path)
        known, lost = True, ends is None
        if ends is None or not self._follows(ends):
            ends, known = self._load(ends)
        tail, file = self.tail, self.file
        if known and tail.mark == ends.written and file.size() == tail.mark.position:
            return ends
        trusted = ends.acknowledged.position
        # With the ends lost nothing tells an old transaction from one under way.
        decided = (lambda _: True) if lost else self._decided
        reason = walk(tail, self._folder, self._partition, trusted=trusted, decided=decided)
        if reason is not None:
            if not known:
                self._refuse_to_cut_damage(file.path, tail.mark, reason)
            file.cut(tail.mark.position)
        if not known:
            # Readers must not see less than before for longer than this sync takes.
            if self._sync:
                file.sync()
            return self._store(ends._replace(acknowledged=tail.mark, written=tail.mark))
        if tail.mark != ends.written:
            kept = tail.mark.position >= ends.written.position
            self._cuts = ends.cuts if kept else ends.cuts + 1
            ends = self._store(ends._replace(cuts=self._cuts, written=tail.mark))
        return ends

    def _follows(self, ends: Ends) -> bool:
        """Whether the tail in memory only has to go on to reach these ends."""
        return (
            self._tail is not None
            and self._file is not None
            and self._cuts == ends.cuts
            and self._tail.mark.segment == ends.written.segment
            and self._tail.mark.position <= min(ends.written.position, self._file.size())
        )

    def _load(self, ends: Ends | None) -> tuple[Ends, bool]:
        """Open the last segment with the tail at its start; return ends, and if they are known.

        They are not if the file is lost, or, after a power loss, older than the last segment: then
        the start of that segment is the last place known to be acknowledged.
        """
        bases = list_segments(self._folder)
        if not bases:
            raise LogDamaged(
                f"{self._folder} has no segment, the records of {self._partition} are gone. "
                f"Restore the folder: `cp -r COPY/{self._partition} {self._folder.parent}/`. "
                f"Without a copy, give them up: `headrace log repair {self._partition.topic}`."
            )
        if ends is not None and bases[-1] < ends.written.segment:
            if ends.written.position > 0:
                path = segment_path(self._folder, ends.written.segment)
                raise damaged(path, 0, self._partition, ends.written.segment, "the file is gone")
            ends = self._make_announced_segment(ends, bases[-1])
            bases.append(ends.written.segment)
        tail = load_tail(self._folder, self._partition, bases[-1])
        known = ends is not None and ends.written.segment == bases[-1] and ends.written.position > 0
        if ends is None or not known:
            old = Ends(0, 0, tail.mark, tail.mark, bases[0]) if ends is None else ends
            # Cuts becomes another number than before, so that who waits for a sync notices.
            cuts = secrets.randbits(62)
            ends = old._replace(cuts=cuts, acknowledged=tail.mark, written=tail.mark)
        self._file = OpenFile(segment_path(self._folder, bases[-1]))
        self._tail, self._cuts = tail, ends.cuts
        return ends, known

    def _refuse_to_cut_damage(self, path: Path, mark: Mark, reason: str) -> None:
        """Without ends nothing tells damage from a torn tail, but a tail has nothing after it."""
        view = memoryview(map_file(path))
        if (position := holds_a_batch(view, mark.position, len(view))) is not None:
            reason = f"{reason}, and a whole batch follows at byte {position}"
            raise damaged(path, mark.position, self._partition, mark.offset, reason)

    def roll(self, ends: Ends) -> Ends:
        """Announce a new segment, then make it; the caller has synced the old one."""
        tail = self.tail
        announced = Mark(tail.mark.offset, tail.mark.offset, 0)
        ends = self._store(ends._replace(acknowledged=announced, written=announced))
        return self._make_segment(ends, tail)

    def _make_announced_segment(self, ends: Ends, previous: int) -> Ends:
        path = segment_path(self._folder, previous)
        tail = load_tail(self._folder, self._partition, previous)
        walk(
            tail,
            self._folder,
            self._partition,
            trusted=path.stat().st_size,
            decided=self._decided,
        )
        if tail.mark.offset != ends.written.offset:
            reason = f"the file ends, but records up to offset {ends.written.offset} were in it"
            raise damaged(path, tail.mark.position, self._partition, tail.mark.offset, reason)
        return self._make_segment(ends, tail)

    def _make_segment(self, ends: Ends, tail: Tail) -> Ends:
        position = make_segment(self._folder, tail, sync=self._sync)
        tail.mark = Mark(tail.mark.offset, tail.mark.offset, position)
        self._file = OpenFile(segment_path(self._folder, tail.mark.segment))
        return self._store(ends._replace(acknowledged=tail.mark, written=tail.mark))

    def _store(self, ends: Ends) -> Ends:
        return write_ends(self._ends_path, ends)
