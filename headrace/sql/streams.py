"""`CREATE STREAM name (columns, WATERMARK ...) WITH (...)` into a Stream, and CREATE TABLE too.

A table is read as a stream of its changes, with a primary key.
"""

from collections.abc import Mapping

from sqlglot import Token

from headrace.errors import Problem
from headrace.model.definitions import DEFAULT_IDLE_TIMEOUT_US, Stream
from headrace.model.nodes import ARRIVAL
from headrace.model.validate import validate_stream
from headrace.sql.bodies import Body, read_body
from headrace.sql.creating import TABLE, Kind
from headrace.sql.options import Option, read_duration, read_options
from headrace.sql.primary_keys import (
    no_primary_key,
    nullable_problems,
    removal_problems,
    with_primary_key,
)
from headrace.sql.statements import Cursor, Statement
from headrace.sql.unique import UNIQUE_OPTIONS, with_unique

__all__ = ["STREAM_OPTIONS", "TABLE_OPTIONS", "read_stream"]

STREAM_OPTIONS = ("topic", "format", "key", "timestamp_format", "idle_timeout", *UNIQUE_OPTIONS)
TABLE_OPTIONS = (
    *("topic", "format", "key_from", "timestamp_format", "decimal_format", "source_table"),
    *("idle_timeout", "removed_records"),
)


def read_stream(
    statement: Statement, cursor: Cursor, kind: Kind, problems: list[Problem]
) -> tuple[Stream, bool]:
    """Read what follows CREATE STREAM or TABLE; single problems are added, the rest is read on.

    Returned with the stream: whether all its columns and its watermark could be read, so that
    views over it can be judged. Refused: so little could be read that there is no stream to return.
    """
    source, is_table = statement.source, kind is TABLE
    name = cursor.take_name(f"name of the {kind.name}")
    create = f"CREATE {' '.join(kind.words)}"
    if cursor.next_is("WITH"):
        raise cursor.refuse(
            f"{kind.name} {name.text} has no columns; write {create} {name.text} "
            "(column TYPE, ...) WITH (...)"
        )
    inside = cursor.take_parenthesised(f"the columns of {name.text}")
    before = len(problems)
    body = read_body(source, name, inside, problems, is_table=is_table)
    sound = len(problems) == before
    options: Mapping[str, Option] = {}
    if cursor.accept("WITH"):
        known = TABLE_OPTIONS if is_table else STREAM_OPTIONS
        options = read_options(cursor, create, known, problems)
    if not cursor.done:
        raise cursor.refuse(
            f"the statement should end here{cursor.found()}; write ; between statements"
        )
    idle_us = read_duration(source, options, "idle_timeout", problems)
    stream = _build(
        statement, name, body, options, DEFAULT_IDLE_TIMEOUT_US if idle_us is None else idle_us
    )
    if is_table:
        problems += [*nullable_problems(source, body), *removal_problems(source, options)]
        stream = with_primary_key(stream, body, options)
    else:
        stream = with_unique(stream, source, options, problems)
    locations = body.locations | {
        key: source.location(each.value.start) for key, each in options.items()
    }
    locations["name"] = source.location(name.start)
    if is_table and not body.primary_key:
        problems += [source.problem(name, no_primary_key(stream))] if sound else []
        sound = False
    elif sound or body.columns:
        problems += validate_stream(stream, locations)
    return stream, sound


def _build(
    statement: Statement,
    name: Token,
    body: Body,
    options: Mapping[str, Option],
    idle_timeout_us: int,
) -> Stream:
    names = [column.name for column in body.columns] + [each.name for each in body.computed]
    spelling = {name.lower(): name for name in names}

    def text(option: str) -> str | None:
        return options[option].text if option in options else None

    def column(written: str | None) -> str | None:
        return None if written is None else spelling.get(written.lower(), written)

    def time(written: str) -> str | None:
        return ARRIVAL if written.lower() == ARRIVAL else column(written)

    topic, encoding, written = text("topic"), text("format"), text("timestamp_format")
    watermark = body.watermark
    return Stream(
        name=name.text,
        columns=tuple(body.columns),
        computed=tuple(body.computed),
        topic=name.text if topic is None else topic,
        format="json" if encoding is None else encoding.lower(),
        event_time=time(watermark.column.text) if watermark else None,
        delay_us=watermark.delay_us if watermark else 0,
        adaptive=watermark.adaptive if watermark else None,
        idle_timeout_us=idle_timeout_us,
        key=column(text("key")),
        # What it is by default is not said.
        timestamp_format=None if written == "iso8601" else written,
        sql=statement.sql,
        location=statement.location,
    )
