"""Which records compaction keeps: a rule over whole columns.

A record with a key goes when
- the pass knows a newer record of its key, or
- it is a tombstone, it is in a clean segment, and its time has come: `until`, which it got when it
  was first compacted, and which never changes.
In a clean segment no older record of its key is left before a tombstone, so nothing comes back to
life when it goes. All other records stay, those without a key for ever.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Kept", "Newest", "choose", "merge_newest", "newest_of"]


class Newest(NamedTuple):
    """The newest record of each of some keys, exactly: keys are compared, not hashes."""

    keys: pa.ChunkedArray
    offsets: pa.ChunkedArray


class Kept(NamedTuple):
    """What stays of a segment, as STORED, and how many records do not."""

    records: pa.Table
    removed: int


def newest_of(stored: pa.Table) -> Newest:
    """Return the newest record of each key in a segment; of its columns key and offset suffice."""
    return _group(stored.filter(pc.is_valid(stored.column("key"))))


def merge_newest(parts: Sequence[Newest]) -> Newest:
    """Return the newest record of each key in several segments."""
    tables = [pa.table({"key": keys, "offset": offsets}) for keys, offsets in parts]
    return parts[0] if len(parts) == 1 else _group(pa.concat_tables(tables))


def _group(keyed: pa.Table) -> Newest:
    grouped = keyed.group_by("key", use_threads=False).aggregate([("offset", "max")])
    grouped = grouped.combine_chunks()  # or looking up would search the chunks every time
    return Newest(grouped.column("key"), grouped.column("offset_max"))


def choose(
    stored: pa.Table, newest: Newest | None, *, clean: bool, now_us: int, until_us: int
) -> Kept:
    """Return what stays of a segment; tombstones that have no `until` yet get `until_us`."""
    key, until = stored.column("key"), stored.column("until")
    tombstone = pc.and_(pc.is_valid(key), pc.is_null(stored.column("value")))
    if pc.any(tombstone).as_py():
        until = pc.if_else(tombstone, pc.coalesce(until, pa.scalar(until_us, pa.int64())), until)
        index = stored.schema.get_field_index("until")
        stored = stored.set_column(index, stored.schema.field("until"), until)
    goes = pc.and_(pc.fill_null(pc.less_equal(until, now_us), False), clean)
    if newest is not None:
        # Where a key is not among the newest, the index is null, and so is what follows from it.
        known = pc.take(newest.offsets, pc.index_in(key, value_set=newest.keys))
        newer = pc.greater(known, stored.column("offset"))
        goes = pc.or_(goes, pc.fill_null(newer, False))
    removed = pc.sum(goes).as_py() or 0
    return Kept(stored.filter(pc.invert(goes)) if removed else stored, removed)
