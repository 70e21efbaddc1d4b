"""Rows of streams that are written to topics, on their way there: written within the commit.

Each row of a turn's delta becomes a record: its value is the row as JSON, and its sequence the
offset of the source record and the row's number among the rows of that record. Of two versions of
a stream the first that comes to a record writes its rows: what lies before `next_offset` of
`headrace.written_by` is written, so a version that is built again from the log's start writes on
where the one before it stands.
"""

from collections.abc import Mapping

import pyarrow as pa

from headrace.errors import MergeFailed
from headrace.ledger.entries import Written, WrittenBy
from headrace.log.base import MAX_RECORD_BYTES
from headrace.plan.tables import RECORD_KEY, WATERMARK, Table
from headrace.schema.json_rows import json_object, key_bytes
from headrace.store.base import MAX_ORDINALS
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import quote

__all__ = ["WRITTEN_BY", "write_rows"]

WRITTEN_BY = (
    "SELECT topic, producer_id, version, from_offset, next_offset FROM headrace.written_by "
    "ORDER BY topic, producer_id"
)
_NEW = "temp.__written"


def write_rows(file: DuckDBFile, written: Written) -> None:
    """Let the rows of a turn wait that no version has written yet. MergeFailed."""
    table = written.table
    assert table.target is not None
    topic = table.target.topic
    producers = {number: f"{written.producer}/{number}" for number in written.ends}
    known = _known(file, topic, list(producers.values()))
    begun: dict[int, int] = {}  # partitions that the turn comes further in than any before
    moved: list[WrittenBy] = []
    for number, end in written.ends.items():
        before = known.get(producers[number])
        at = 0 if before is None else before.next_offset
        if end <= at and before is not None:
            continue
        begun[number] = at
        keeps = before is not None and before.version == table.version
        begin = before.from_offset if before is not None and keeps else at
        moved.append(WrittenBy(topic, producers[number], table.version, begin, end))
    if not moved:
        return
    if written.rows:
        _add(file, written, begun)
    file.run(
        "DELETE FROM headrace.written_by WHERE topic = ? AND list_contains(?, producer_id)",
        [topic, [each.producer_id for each in moved]],
    )
    file.insert("headrace.written_by", moved)


def _known(file: DuckDBFile, topic: str, producers: list[str]) -> dict[str, WrittenBy]:
    rows = file.rows(
        "SELECT topic, producer_id, version, from_offset, next_offset FROM headrace.written_by "
        "WHERE topic = ? AND list_contains(?, producer_id)",
        [topic, producers],
    )
    return {row[1]: WrittenBy(*row) for row in rows}


def _add(file: DuckDBFile, written: Written, begun: Mapping[int, int]) -> None:
    """Let rows wait, those of each partition from an offset on."""
    table = written.table
    assert table.target is not None
    floors = pa.table(
        {
            "floor_partition": pa.array(list(begun), pa.int32()),
            "floor_offset": pa.array(list(begun.values()), pa.int64()),
        }
    )
    with (
        file.registered("__rows", pa.concat_tables(written.rows)) as rows,
        file.registered("__floors", floors) as starts,
    ):
        file.run(
            f"CREATE TEMP TABLE {_NEW} AS {_records(table)} FROM {rows} "
            f"JOIN {starts} ON __partition = floor_partition AND __offset >= floor_offset"
        )
    _check(file, written)
    file.run(
        f"INSERT INTO headrace.written_rows "
        f"SELECT nextval('headrace.written_numbers'), ?, ? || '/' || __partition, ?, ?, "
        f"__partition, __offset, __offset * {MAX_ORDINALS} + ordinal, branch, ordinals, "
        f"{WATERMARK}, ?, key, value "
        f"FROM (FROM {_NEW} ORDER BY __partition, __offset, ordinal)",
        [
            table.target.topic,
            written.producer,
            table.version,
            written.source,
            table.target.key != RECORD_KEY,
        ],
    )
    file.run(f"DROP TABLE {_NEW}")


def _records(table: Table) -> str:
    """Return the beginning of a query for rows as records, with what tells them apart."""
    assert table.target is not None
    rows = [column.name for column in table.keys if column.name.startswith("__row")]
    branch = ["__branch"] if any(each.name == "__branch" for each in table.keys) else []
    number = "0"
    if order := ", ".join([*branch, *rows]):
        number = f"row_number() OVER (PARTITION BY __partition, __offset ORDER BY {order}) - 1"
    types = {column.name: column.type for column in table.columns}
    key = table.target.key
    outputs = enumerate(table.outputs)
    columns = {
        "ordinal": number,
        "branch": branch[0] if branch else "NULL",
        "ordinals": f"concat_ws(',', {', '.join(rows)})" if rows else "NULL",
        "key": key_bytes(quote(key), types[key]),
        "value": json_object([(each.name, f"o{at}", each.type) for at, each in outputs]),
    }
    named = ", ".join(f"{text} AS {name}" for name, text in columns.items())
    return f"SELECT __partition, __offset, {WATERMARK}, {named}"


def _check(file: DuckDBFile, written: Written) -> None:
    """Refuse what could not be written when it is too late: too large, or too many. MergeFailed."""
    view, topic = written.table.view, written.source
    size = "coalesce(octet_length(key), 0) + strlen(value)"
    found = file.rows(
        f"SELECT __partition, __offset, ordinal, {size} AS size FROM {_NEW} "
        f"WHERE size > {MAX_RECORD_BYTES} OR ordinal >= {MAX_ORDINALS} ORDER BY ALL LIMIT 1"
    )
    for partition, offset, ordinal, bytes in found:
        if ordinal >= MAX_ORDINALS:
            raise MergeFailed(
                f"stream {view}: the record {topic}/{partition}@{offset} becomes more than "
                f"{MAX_ORDINALS} rows, which is the most that are written of one. Take fewer "
                f"elements before they are exploded, for example with slice(x, 1, 1000).",
                view=view,
            )
        raise MergeFailed(
            f"stream {view}: a row of {topic}/{partition}@{offset} has {bytes} bytes as a record, "
            f"{MAX_RECORD_BYTES} is the most that the log takes. Leave its longest column out of "
            f"the stream or make it shorter, a text with left(x, 1000).",
            view=view,
        )
