"""Compare what the topic of a written stream holds with the rows that the log gives.

Every row of the version that writes has to be there, or to wait, each once and as the log gives it.
Rows that versions before it wrote are theirs: of those it is only asked that none stands twice.
Where retention or compaction took records of the topic away, none can be missed.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.base import Log, Partition, Range
from headrace.observe.sides import last_header
from headrace.plan.tables import Table
from headrace.sinks.outbox import HEADER_OFFSET, HEADER_PARTITION, HEADER_TOPIC, HEADER_VERSION
from headrace.sinks.written import HEADER_BRANCH, HEADER_ORDINALS
from headrace.store.base import Snapshot

__all__ = ["compare_written", "written_rows"]

_ALL = 1 << 60
# What tells rows apart, and what they say.
_PLACE = ("source_topic", "source_partition", "source_offset", "branch", "ordinals")
_HEADERS = dict(
    zip(
        ("version", *_PLACE),
        (HEADER_VERSION, HEADER_TOPIC, HEADER_PARTITION, HEADER_OFFSET, HEADER_BRANCH,
         HEADER_ORDINALS),
        strict=True,
    )
)  # fmt: skip
_NAMED = 3  # rows, where a sentence names some


def written_rows(snapshot: Snapshot, table: Table) -> pa.Table:
    """Return the rows of a version that wait in a store, those of all partitions."""
    assert table.target is not None
    rows = snapshot.written_rows(max_rows=_ALL, max_bytes=_ALL)
    mine = pc.and_(
        pc.equal(rows["topic"], table.target.topic), pc.equal(rows["version"], table.version)
    )
    return rows.filter(mine)


def compare_written(
    log: Log,
    snapshot: Snapshot,
    table: Table,
    expected: pa.Table,
    ends: Mapping[Partition, int],
) -> Iterator[str]:
    """Yield how a topic differs from the rows that the log gives before these offsets."""
    assert table.target is not None
    topic = table.target.topic
    published = _read(log, topic)
    published = published.filter(pa.array(_before(published, ends)))
    mine = published.filter(pc.equal(published["version"], table.version))
    others = published.filter(pc.not_equal(published["version"], table.version))
    waiting = written_rows(snapshot, table)
    where = f"topic {topic}, of stream {table.view}"
    twice = published.num_rows - len(pc.unique(_text(published, _PLACE)))
    if twice:
        yield f"{where}: {twice} rows stand twice"
    said = (*_PLACE, "key", "value")
    wrong = mine.filter(pc.invert(pc.is_in(_text(mine, said), _text(expected, said))))
    if wrong.num_rows:
        yield f"{where}: should not hold {wrong.num_rows} rows, {_some(wrong)}"
    if _lost_some(log, topic):
        return
    due = expected.filter(pa.array(_due(snapshot, table, expected, others)))
    there = pa.concat_arrays([_text(mine, _PLACE), _text(waiting, _PLACE)])
    missing = due.filter(pc.invert(pc.is_in(_text(due, _PLACE), there)))
    if missing.num_rows:
        yield f"{where}: lacks {missing.num_rows} rows, {_some(missing)}"


def _read(log: Log, topic: str) -> pa.Table:
    """Return the rows in a topic that a stream was written to, with the headers as columns."""
    schema = pa.schema([(name, pa.string()) for name in _HEADERS])
    schema = schema.append(pa.field("key", pa.binary())).append(pa.field("value", pa.binary()))
    parts = [schema.empty_table()]
    if any(known.name == topic for known in log.topics()):
        for partition, extent in log.extents(topic).items():
            for batch in log.read(Range(partition, *extent)):
                headers = [last_header(batch["headers"], name) for name in _HEADERS.values()]
                texts = [each.cast(pa.string()) for each in headers]
                columns = [*texts, batch["key"], batch["value"]]
                parts.append(pa.table(columns, schema=schema))
    found = pa.concat_tables(parts)
    found = found.filter(pc.is_valid(found["version"]))  # others may write there too
    for name, type in (("source_partition", pa.int32()), ("source_offset", pa.int64())):
        column = found[name].cast(type)
        found = found.set_column(found.schema.get_field_index(name), name, column)
    return found


def _text(rows: pa.Table, columns: tuple[str, ...]) -> pa.Array:
    """Return columns of each row as one text; a null is told from an empty text."""
    parts = []
    for name in columns:
        column = rows[name]
        texts = column if pa.types.is_binary(column.type) else column.cast(pa.string())
        parts.append(pc.fill_null(texts.cast(pa.binary()), b"\0"))
    joined = pc.binary_join_element_wise(*parts, b"\1")
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def _places(rows: pa.Table) -> list[Partition]:
    """Return the source partition of each of a few rows."""
    topics, numbers = rows["source_topic"].to_pylist(), rows["source_partition"].to_pylist()
    return [Partition(*each) for each in zip(topics, numbers, strict=True)]


def _before(rows: pa.Table, ends: Mapping[Partition, int]) -> npt.NDArray[np.bool_]:
    """Return which rows came of records before these offsets: a running engine may be further."""
    kept = np.zeros(rows.num_rows, dtype=bool)
    for partition, end in ends.items():
        kept |= _of(rows, partition) & (rows["source_offset"].to_numpy() < end)
    return kept


def _due(
    snapshot: Snapshot, table: Table, expected: pa.Table, others: pa.Table
) -> npt.NDArray[np.bool_]:
    """Return which rows the version has to have written: those behind what others wrote."""
    assert table.target is not None
    offsets = expected["source_offset"].to_numpy()
    due = np.zeros(expected.num_rows, dtype=bool)
    for each in snapshot.written_by():
        if (each.topic, each.version) == (table.target.topic, table.version):
            mine = pc.equal(expected["producer_id"], each.producer_id)
            due |= mine.to_numpy() & (offsets >= each.from_offset) & (offsets < each.next_offset)
    partitions = expected.select(["source_topic", "source_partition"]).group_by(
        ["source_topic", "source_partition"]
    )
    for partition in _places(partitions.aggregate([])):
        written = others["source_offset"].to_numpy()[_of(others, partition)]
        if len(written):
            due &= ~(_of(expected, partition) & (offsets <= written.max()))
    return due


def _of(rows: pa.Table, partition: Partition) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.and_(
        pc.equal(rows["source_topic"], partition.topic),
        pc.equal(rows["source_partition"], partition.number),
    ).to_numpy()
    return found


def _lost_some(log: Log, topic: str) -> bool:
    if all(known.name != topic for known in log.topics()):
        return False
    removed = any(extent.first_offset > 0 for extent in log.extents(topic).values())
    return removed or log.topic(topic).settings.compact


def _some(rows: pa.Table) -> str:
    first = rows.slice(0, _NAMED).select(list(_PLACE[:3])).to_pylist()
    return ", ".join("{}/{}@{}".format(*row.values()) for row in first) + " ..."
