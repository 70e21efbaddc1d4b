"""Read back which records a side topic (`<stream>.dead`, `<view>.late`) holds."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.base import Log, Range
from headrace.sinks.outbox import HEADER_OFFSET, HEADER_PARTITION, HEADER_TOPIC, HEADER_VERSION

__all__ = ["last_header", "read_side_offsets"]


def read_side_offsets(log: Log, topic: str, version: str, source: str) -> Iterator[pa.Table]:
    """Yield what a version put aside of a source topic, repeats too: `partition` and `offset`."""
    if all(known.name != topic for known in log.topics()):
        return
    for partition, extent in log.extents(topic).items():
        for batch in log.read(Range(partition, *extent)):
            headers = batch["headers"]
            mine = pc.and_(
                pc.equal(last_header(headers, HEADER_VERSION), version.encode()),
                pc.equal(last_header(headers, HEADER_TOPIC), source.encode()),
            )
            places = [
                last_header(headers, name).filter(mine).cast(pa.string()).cast(type)
                for name, type in ((HEADER_PARTITION, pa.int32()), (HEADER_OFFSET, pa.int64()))
            ]
            yield pa.table(places, ["partition", "source_offset"])


def last_header(headers: pa.Array, name: str) -> pa.Array:
    """Return each record's last header of a name: ours, even where the record brought one."""
    parents = pc.list_parent_indices(headers).to_numpy()
    flat = headers.flatten()
    here = np.flatnonzero(pc.equal(flat.field("name"), name).to_numpy(zero_copy_only=False))
    place = np.full(len(headers), -1)
    place[parents[here]] = here  # of several the last assignment counts
    return flat.field("value").take(pa.array(place, mask=place < 0))
