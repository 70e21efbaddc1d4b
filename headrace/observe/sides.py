"""Read back which records a side topic (`<stream>.dead`, `<view>.late`) holds."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.base import Log, Range
from headrace.sinks.outbox import HEADER_OFFSET, HEADER_TOPIC, HEADER_VERSION

__all__ = ["Offsets", "last_header", "read_side_offsets"]

Offsets = npt.NDArray[np.int64]


def read_side_offsets(log: Log, topic: str, version: str, source: str) -> dict[int, Offsets]:
    """Return what offsets of a source topic a version put aside, by partition, repeats too."""
    if all(known.name != topic for known in log.topics()):
        return {}
    found: dict[int, Offsets] = {}
    for partition, extent in log.extents(topic).items():
        parts = [np.array([], dtype=np.int64)]
        for batch in log.read(Range(partition, *extent)):
            offsets = last_header(batch["headers"], HEADER_OFFSET)
            versions = last_header(batch["headers"], HEADER_VERSION)
            sources = last_header(batch["headers"], HEADER_TOPIC)
            mine = pc.equal(versions, pa.scalar(version.encode(), pa.binary()))
            mine = pc.and_(mine, pc.equal(sources, pa.scalar(source.encode(), pa.binary())))
            text = offsets.filter(mine).cast(pa.string())
            parts.append(text.cast(pa.int64()).to_numpy(zero_copy_only=False))
        found[partition.number] = np.concatenate(parts)
    return found


def last_header(headers: pa.Array, name: str) -> pa.Array:
    """Return each record's last header of a name: ours, even where the record brought one."""
    parents = pc.list_parent_indices(headers).to_numpy()
    flat = headers.flatten()
    here = np.flatnonzero(pc.equal(flat.field("name"), name).to_numpy(zero_copy_only=False))
    place = np.full(len(headers), -1)
    place[parents[here]] = here  # of several the last assignment counts
    return flat.field("value").take(pa.array(place, mask=place < 0))
