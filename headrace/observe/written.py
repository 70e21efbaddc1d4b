"""Read back the rows that the topic of a written stream holds.

Every row of the version that writes has to be there, or to wait, each once and as the log gives it.
Rows that versions before it wrote are theirs: of those it is only asked that none stands twice.
Where retention or compaction took records of the topic away, none can be missed.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.base import Log, Range
from headrace.observe.sides import last_header
from headrace.sinks.outbox import HEADER_OFFSET, HEADER_PARTITION, HEADER_TOPIC, HEADER_VERSION
from headrace.sinks.written import HEADER_BRANCH, HEADER_ORDINALS

__all__ = ["is_complete", "read_written_rows"]

_COLUMNS = {
    "version": (HEADER_VERSION, pa.string()),
    "source_topic": (HEADER_TOPIC, pa.string()),
    "source_partition": (HEADER_PARTITION, pa.int32()),
    "source_offset": (HEADER_OFFSET, pa.int64()),
    "branch": (HEADER_BRANCH, pa.string()),
    "ordinals": (HEADER_ORDINALS, pa.string()),
}


def read_written_rows(log: Log, topic: str) -> Iterator[pa.Table]:
    """Yield the rows in a topic that a stream was written to, with the headers as columns."""
    if all(known.name != topic for known in log.topics()):
        return
    for partition, extent in log.extents(topic).items():
        for batch in log.read(Range(partition, *extent)):
            ours = pc.is_valid(last_header(batch["headers"], HEADER_VERSION))
            batch = batch.filter(ours)  # others may write there too
            headers = [
                last_header(batch["headers"], name).cast(pa.string()).cast(type)
                for name, type in _COLUMNS.values()
            ]
            columns = [*headers, batch["key"], batch["value"]]
            yield pa.table(columns, [*_COLUMNS, "key", "value"])


def is_complete(log: Log, topic: str) -> bool:
    """Whether neither retention nor compaction took anything from a topic."""
    if all(known.name != topic for known in log.topics()):
        return True
    removed = any(extent.first_offset > 0 for extent in log.extents(topic).values())
    return not removed and not log.topic(topic).settings.compact
