"""Let groups go on in another log, into which the topics that they read were copied.

Promise: a group goes on before the same record as here. Offsets are translated: they differ
wherever the source has gaps or begins after 0.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from headrace.consume.shared_reading import list_groups, reset_group
from headrace.log.base import Log, Partition, Range
from headrace.log.copying import copy_producer

__all__ = ["copy_groups"]


def copy_groups(source: Log, target: Log, topics: set[str]) -> Iterator[dict[str, Any]]:
    """Let groups go on in the copies of topics where they are here; yield what was done.

    GroupActive: a group has members in the target. A group's offsets in a compacted topic are left
    out, since records that are gone cannot be counted.
    """
    compacted = {name for name in topics if source.topic(name).settings.compact}
    for group in list_groups(source):
        wanted = {place: offset for place, offset in group.offsets.items() if place.topic in topics}
        left_out = sorted({place.topic for place in wanted} & compacted)
        wanted = {place: offset for place, offset in wanted.items() if place.topic not in compacted}
        if wanted:
            reset_group(target, group.name, _translated(source, target, wanted))
        if wanted or left_out:
            yield {"group": group.name, "offsets": len(wanted), "left_out": left_out}


def _translated(source: Log, target: Log, offsets: Mapping[Partition, int]) -> dict[Partition, int]:
    """Return the offsets in the target before the same records.

    Counted from the copied end back, so that what retention took of either start is no matter.
    """
    translated: dict[Partition, int] = {}
    for place, offset in offsets.items():
        copied_to = target.last_sequence(place, copy_producer(place.topic))
        extent = target.extents(place.topic)[place]
        first = source.extents(place.topic)[place].first_offset
        if copied_to is None or max(first, offset) > copied_to:
            translated[place] = extent.end_offset
            continue
        unread = Range(place, max(first, offset), copied_to + 1)
        left = sum(batch.num_rows for batch in source.read(unread))
        translated[place] = _offset_before_last(target, Range(place, *extent), left)
    return translated


def _offset_before_last(log: Log, range: Range, count: int) -> int:
    """Return the offset of the record that has `count` records from itself to the range's end."""
    span = count
    while True:
        # Where the log leaves out offsets, more of them are looked at.
        start = max(range.start, range.end - span)
        batches = log.read(Range(range.partition, start, range.end))
        offsets = [batch["offset"].to_numpy() for batch in batches]
        found = np.concatenate([np.array([], np.int64), *offsets])
        if len(found) >= count:
            return int(found[-count])
        if start == range.start:
            return start
        span *= 2
