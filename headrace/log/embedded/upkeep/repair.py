"""Give up what is damaged in a partition, so that the rest can be read and appended to again.

A partition keeps one range of offsets, so everything up to the last damage goes, as retention would
remove it: the partition then begins with the first whole segment behind it. Where the last segment
is damaged it begins, empty, where it ended.

Promises:
- Offsets are never used twice.
- Nothing is given up that the plan does not name: records that came after it are kept.
- A repair that dies can be repeated.
Not kept where the last segment goes: what producers have stored. A batch that one of them appends
once more is then stored again.
"""

import secrets
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from headrace.errors import LogDamaged, LogError
from headrace.log.base import Partition
from headrace.log.embedded.ends import Ends, Mark, read_ends, write_ends
from headrace.log.embedded.files import OpenFile, disk_errors, locked
from headrace.log.embedded.follower import make_segment
from headrace.log.embedded.listing import list_files, list_replaced
from headrace.log.embedded.tail import Tail
from headrace.log.embedded.topics import partition_folder
from headrace.log.embedded.upkeep.verify import CheckedSegment
from headrace.wording import counted

__all__ = ["Repair", "give_up", "plan_repair"]


class Repair(NamedTuple):
    """What a partition gives up: the offsets `[first, until)`."""

    partition: Partition
    folder: Path
    first: int
    until: int
    readable: int  # records among them that are not damaged
    ends_there: bool  # nothing is left of the partition

    def __str__(self) -> str:
        """Say it in one line."""
        return (
            f"{self.partition}: gives up the offsets {self.first:,} to {self.until - 1:,}, with "
            f"{counted(self.readable, 'record')} that can still be read"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the same under names, as JSON takes it."""
        return {
            "partition": self.partition.number,
            "first_offset": self.first,
            "end_offset": self.until,
            "readable_records": self.readable,
        }


def plan_repair(checked: Sequence[CheckedSegment], path: Path) -> list[Repair]:
    """Return what the partitions of a topic must give up, from what `verify` found.

    LogDamaged: it cannot be told where a partition ended.
    """
    plans = []
    for partition, group in groupby(checked, key=lambda segment: segment.partition):
        segments = list(group)
        damaged = [at for at, segment in enumerate(segments) if segment.damages]
        if not damaged:
            continue
        folder = partition_folder(path, partition)
        ends = _known_ends(folder, partition)
        behind = segments[damaged[-1] + 1 :]
        # What is told of the folder as a whole keeps the last segment from being appended to.
        if any(segment.path == folder for segment in segments):
            behind = []
        until = int(behind[0].path.name[:20]) if behind else ends.written.offset
        lost = segments[: len(segments) - len(behind)]
        readable = sum(segment.records for segment in lost)
        plans.append(Repair(partition, folder, ends.first, until, readable, not behind))
    return plans


def _known_ends(folder: Path, partition: Partition) -> Ends:
    ends = read_ends(folder / "ends")
    if ends is None:
        raise LogDamaged(
            f"{folder}/ends is gone or damaged, and so are segments of {partition}, so it is not "
            f"known where the partition ended. Restore the folder: "
            f"`cp -r COPY/{partition} {folder.parent}/`."
        )
    return ends


def give_up(repair: Repair) -> None:
    """Remove what a partition gives up. LogError: it grew since. DiskFull, LogDamaged."""
    folder = repair.folder
    with locked(folder / "compacting"), locked(folder / "lock"), disk_errors(folder):
        ends = _known_ends(folder, repair.partition)
        if repair.ends_there and ends.written.offset != repair.until:
            raise LogError(
                f"{repair.partition}: records were appended after the plan was made: it ended at "
                f"{repair.until:,}, and ends at {ends.written.offset:,} now. Nothing of it was "
                f"given up. Stop its producers, then run `headrace log repair "
                f"{repair.partition.topic}` again."
            )
        # Retention may have removed more meanwhile.
        ends = ends._replace(first=max(ends.first, repair.until))
        if repair.ends_there:
            start = Mark(repair.until, repair.until, 0)
            # Arrival never goes back, and when the last record arrived is not known any more.
            tail = Tail(start, time.time_ns() // 1000, {})
            mark = start._replace(position=make_segment(folder, tail, sync=True))
            # Other cuts: who has the partition open looks at everything anew.
            cuts = secrets.randbits(62)
            ends = ends._replace(cuts=cuts, acknowledged=mark, written=mark)
        write_ends(folder / "ends", ends)
        OpenFile(folder / "ends").sync()
        for file in [*list_files(folder), *list_replaced(folder)]:
            if file.base_offset < repair.until:
                file.path.unlink()
