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
    AssignWindows,
    Changelog,
    Deduplicate,
    Filter,
    Generate,
    Project,
    Scan,
)
from headrace.model.scalars import Scalar
from headrace.reference.placing import windows_of, with_windows
from headrace.reference.relations import Counts, Part, Question, Relation, Row, ask
from headrace.reference.streams import Readable, split_duplicates
from headrace.reference.unifying import common_type, spark_name

__all__ = ["assign_windows", "deduplicate", "filter_rows", "generate", "project", "scan", "unite"]


def scan(node: Scan | Changelog, question: Question) -> Relation:
    """Return the records of a stream, or the changes of a table."""
    read = question.streams[node.stream]
    return _records(read.stream, read.readable, question)


def deduplicate(node: Deduplicate, question: Question) -> Relation:
    """Return the records of a stream without duplicates."""
    read = question.streams[node.input.stream]
    kept, _ = split_duplicates(read.readable, node.by, node.within_us)
    return _records(read.stream, kept, question)


def _records(stream: Stream, records: Sequence[Readable], question: Question) -> Relation:
    leaf = question.dead.next_leaf()
    alive = [each for each in records if (leaf, each.place) not in question.dead.found]
    # Changes are in the order of their offsets, whatever their event time.
    timed = not stream.primary_key
    rows = [
        Row(each.place, each.place, each.event_us if timed else None, each.watermark, leaf=leaf)
        for each in alive
    ]
    schema = pa.schema([(column.name, column.type.arrow) for column in stream.scanned])
    table = pa.Table.from_pylist([each.values for each in alive], schema=schema)
    own = {name: [_own(each)[name] for each in alive] for name in COORDINATES}
    if stream.event_time == ARRIVAL:
        own[ARRIVAL] = [each.values[ARRIVAL] for each in alive]
    for name, type in COORDINATES.items():
        table = table.append_column(name, pa.array(own[name], type.arrow))
    watermarks = [None if math.isinf(row.watermark) else int(row.watermark) for row in rows]
    table = table.append_column(WATERMARK, pa.array(watermarks, pa.timestamp("us", "UTC")))
    columns = {name: Scalar.column(name) for name in table.column_names}
    counts = Counts(len(rows), len(records) - len(rows))
    return Relation((Part(rows, table, columns, counts),), (counts,))


def _own(each: Readable) -> dict[str, object]:
    """Return the columns of a record that its value does not hold."""
    (topic, partition, offset), record = each.place, each.record
    return {
        "_topic": topic,
        "_partition": partition,
        "_offset": offset,
        "_arrival": record.arrival_us,
        "_key": record.key,
        "_headers": [{"name": name, "value": value} for name, value in record.headers],
    }


def _with_parts(relation: Relation, parts: Sequence[Part]) -> Relation:
    return replace(relation, parts=tuple(parts), counts=tuple(part.counts for part in parts))


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
    """Return the rows for which the condition is true."""
    parts: list[Part] = []
    for part in relation.parts:
        sound, [condition] = ask(question, relation, part, [node.condition])
        kept = [at for at, value in enumerate(condition.values) if value is True]
        left = len(sound.rows) - len(kept)
        counts = part.counts
        if counts.made is None:
            counts = replace(counts, left_out=counts.left_out + left)
        else:
            counts = replace(counts, skipped=counts.skipped + left)
        parts.append(replace(sound.take(kept), counts=counts))
    if relation.folding is None:
        return _with_parts(relation, parts)
    return replace(relation, parts=tuple(parts))  # a group that HAVING leaves out is no record


def unite(relations: Sequence[Relation], question: Question) -> Relation:
    """Return the rows of all relations, under the first one's names and with types of all."""
    parts: list[Part] = []
    names = list(relations[0].parts[0].columns)
    every = [_types(part, question) for relation in relations for part in relation.parts]
    common = [common_type(types) for types in zip(*every, strict=True)]
    for branch, relation in enumerate(relations):
        for part in relation.parts:
            rows = [row._replace(coordinates=(branch, *row.coordinates)) for row in part.rows]
            own = zip(part.columns.values(), _types(part, question), common, strict=True)
            columns = dict(zip(names, (_cast(*each) for each in own), strict=True))
            parts.append(replace(part, rows=rows, columns=columns))
    return Relation(tuple(parts), tuple(part.counts for part in parts))


def _types(part: Part, question: Question) -> list[pa.DataType]:
    """Return the types of a part's columns; no row is looked at."""
    found = question.scalars.evaluate(list(part.columns.values()), part.table.slice(0, 0))
    return [column.type for column in found]


def _cast(column: Scalar, own: pa.DataType, wanted: pa.DataType) -> Scalar:
    if own == wanted:
        return column
    return Scalar(f"cast({{0}} as {spark_name(wanted)})", ("x",)).substitute({"x": column})


def generate(node: Generate, relation: Relation, question: Question) -> Relation:
    """Return each row once per element of its array or map, numbered from 0, with the element."""
    parts: list[Part] = []
    for part in relation.parts:
        sound, [values] = ask(question, relation, part, [node.argument])
        parts.append(_expand(node, sound, values.type, values.values).made_of(sound))
    return _with_parts(relation, parts)


def assign_windows(node: AssignWindows, relation: Relation, question: Question) -> Relation:
    """Return each row once per window around its time, with the window's edges."""
    parts: list[Part] = []
    for part in relation.parts:
        sound, windows = windows_of(node.window, relation, part, question)
        pairs = [(at, span) for at, spans in enumerate(windows) for span in spans]
        made = sound.take([at for at, _ in pairs])
        rows = [
            row._replace(coordinates=(*row.coordinates, span.start_us, span.end_us))
            for row, (_, span) in zip(made.rows, pairs, strict=True)
        ]
        made = with_windows(replace(made, rows=rows), [span for _, span in pairs])
        parts.append(made.made_of(sound))
    return _with_parts(relation, parts)


def _expand(node: Generate, part: Part, type: pa.DataType, values: Sequence[object]) -> Part:
    """Return the rows of a part, each once per element of its value."""
    origins: list[int] = []
    rows: list[Row] = []
    elements: list[tuple[object, ...]] = []
    for at, (row, value) in enumerate(zip(part.rows, values, strict=True)):
        made = _elements(node, value)
        if not made and node.outer:
            made = [(None,) * len(node.columns)]
        for number, element in enumerate(made):
            origins.append(at)
            rows.append(row._replace(coordinates=(*row.coordinates, number)))
            elements.append(element)
    expanded = replace(part.take(origins), rows=rows)
    types = _element_types(node, type)
    for place, (name, each) in enumerate(zip(node.columns, types, strict=True)):
        column = pa.array([element[place] for element in elements], each)
        expanded = expanded.add_column(name, column)
    return expanded


def _elements(node: Generate, value: object) -> list[tuple[object, ...]]:
    """Return the elements of an array or map, each as the columns that it makes."""
    if not isinstance(value, list):  # null
        return []
    found: list[tuple[object, ...]] = []
    for number, element in enumerate(value):
        if node.function == "inline":  # a struct that is null is a row of nulls
            nulls = (None,) * len(node.columns)
            found.append(nulls if element is None else tuple(element.values()))
            continue
        # The entry of a map is a pair.
        parts = element if isinstance(element, tuple) else (element,)
        found.append((number, *parts) if node.function == "posexplode" else parts)
    return found


def _element_types(node: Generate, type: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_null(type):  # there are no rows to tell
        return [pa.null() for _ in node.columns]
    if node.function == "inline":
        return [field.type for field in type.value_type]
    parts = [type.key_type, type.item_type] if pa.types.is_map(type) else [type.value_type]
    return [pa.int32(), *parts] if node.function == "posexplode" else parts
