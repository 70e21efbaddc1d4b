"""One function per node that takes a row at a time; `model/nodes.py` says what each means."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from headrace.model.definitions import Stream
from headrace.model.nodes import (
    ARRIVAL,
    COORDINATES,
    WATERMARK,
    Deduplicate,
    Filter,
    Generate,
    Project,
    Scan,
)
from headrace.model.scalars import Scalar
from headrace.reference.relations import Part, Question, Relation, Row, ask
from headrace.reference.streams import Readable, split_duplicates

__all__ = ["deduplicate", "filter_rows", "generate", "project", "scan", "unite"]


def scan(node: Scan, question: Question) -> Relation:
    """Return the records of a stream."""
    read = question.streams[node.stream]
    return _records(read.stream, read.readable)


def deduplicate(node: Deduplicate, question: Question) -> Relation:
    """Return the records of a stream without duplicates."""
    read = question.streams[node.input.stream]
    kept, _ = split_duplicates(read.readable, node.by, node.within_us)
    return _records(read.stream, kept)


def _records(stream: Stream, records: Sequence[Readable]) -> Relation:
    rows = [Row(record.place, record.event_us, record.watermark) for record in records]
    schema = pa.schema([(column.name, column.type.arrow) for column in stream.scanned])
    if stream.event_time == ARRIVAL:
        schema = schema.append(pa.field(ARRIVAL, COORDINATES[ARRIVAL].arrow))
    table = pa.Table.from_pylist([record.values for record in records], schema=schema)
    watermarks = [None if math.isinf(row.watermark) else int(row.watermark) for row in rows]
    table = table.append_column(WATERMARK, pa.array(watermarks, pa.timestamp("us", "UTC")))
    columns = {name: Scalar.column(name) for name in table.column_names}
    return Relation((Part(rows, table, columns),), seen=len(rows))


def project(node: Project, relation: Relation) -> Relation:
    """Return rows with other columns; nothing is evaluated here."""
    parts = [
        replace(
            part,
            columns={each.name: each.scalar.substitute(part.columns) for each in node.columns},
        )
        for part in relation.parts
    ]
    return replace(relation, parts=tuple(parts))


def filter_rows(node: Filter, relation: Relation, question: Question) -> Relation:
    """Return the rows for which the condition is true; a row that it fails on is dead."""
    parts: list[Part] = []
    skipped = 0
    dead = list(relation.dead)
    for part in relation.parts:
        sound, [condition], failed = ask(question, relation, part, [node.condition])
        kept = [at for at, value in enumerate(condition.values) if value is True]
        parts.append(sound.take(kept))
        skipped += len(sound.rows) - len(kept)
        dead += failed
    if relation.folding is None:
        skipped += relation.skipped
        return replace(relation, parts=tuple(parts), skipped=skipped, dead=tuple(dead))
    return replace(relation, parts=tuple(parts))  # a group that HAVING leaves out is no record


def unite(relations: Sequence[Relation]) -> Relation:
    """Return the rows of all relations, under the first one's names."""
    parts: list[Part] = []
    names = list(relations[0].parts[0].columns)
    for branch, relation in enumerate(relations):
        for part in relation.parts:
            rows = [row._replace(coordinates=(branch, *row.coordinates)) for row in part.rows]
            columns = dict(zip(names, part.columns.values(), strict=True))
            parts.append(Part(rows, part.table, columns))
    return Relation(
        tuple(parts),
        sum(relation.seen for relation in relations),
        sum(relation.skipped for relation in relations),
        tuple((at, *each) for at, branch in enumerate(relations) for each in branch.dead),
        tuple((at, *each) for at, branch in enumerate(relations) for each in branch.dead_before),
    )


def generate(node: Generate, relation: Relation, question: Question) -> Relation:
    """Return each row once per element of its array or map, numbered from 0, with the element."""
    parts: list[Part] = []
    dead = [*relation.dead_before, *relation.dead]
    for part in relation.parts:
        sound, [values], failed = ask(question, relation, part, [node.argument])
        parts.append(_expand(node, sound, values.type, values.values))
        dead += failed
    return Relation(tuple(parts), sum(len(part.rows) for part in parts), dead_before=tuple(dead))


def _expand(node: Generate, part: Part, type: pa.DataType, values: Sequence[object]) -> Part:
    """Return the rows of a part, each once per element of its value."""
    origins: list[int] = []
    rows: list[Row] = []
    elements: list[tuple[object, ...]] = []
    for at, (row, value) in enumerate(zip(part.rows, values, strict=True)):
        made = _elements(node.function, value)
        if not made and node.outer:
            made = [(None,) * len(node.columns)]
        for number, element in enumerate(made):
            origins.append(at)
            rows.append(row._replace(coordinates=(*row.coordinates, number)))
            elements.append(element)
    expanded = part.take(origins)
    table, columns = expanded.table, dict(part.columns)
    for place, (name, each) in enumerate(
        zip(node.columns, _element_types(node.function, type), strict=True)
    ):
        # Under a name of its own: the table may have a column of this name already.
        own = f"_generated_{table.num_columns}"
        column = pa.array([element[place] for element in elements], each)
        table = table.append_column(own, column)
        columns[name] = Scalar.column(own)
    return Part(rows, table, columns)


def _elements(function: str, value: object) -> list[tuple[object, ...]]:
    """Return the elements of an array or map, each as the columns that it makes."""
    if not isinstance(value, list):  # null
        return []
    found: list[tuple[object, ...]] = []
    for number, element in enumerate(value):
        if function == "inline":
            found.append(tuple(element.values()))
            continue
        # The entry of a map is a pair.
        parts = element if isinstance(element, tuple) else (element,)
        found.append((number, *parts) if function == "posexplode" else parts)
    return found


def _element_types(function: str, type: pa.DataType) -> list[pa.DataType]:
    if function == "inline":
        return [field.type for field in type.value_type]
    parts = [type.key_type, type.item_type] if pa.types.is_map(type) else [type.value_type]
    return [pa.int32(), *parts] if function == "posexplode" else parts
