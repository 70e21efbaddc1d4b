"""`CREATE STREAM name (columns, WATERMARK ...) WITH (...)` into a Stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import Token

from headrace.errors import Location, Problem
from headrace.model.definitions import DEFAULT_IDLE_TIMEOUT_US, Computed, Stream
from headrace.model.nodes import ARRIVAL
from headrace.model.validate import validate_stream
from headrace.schema.types import Column
from headrace.sql.columns import read_column, split_columns
from headrace.sql.computed import Written, bind_computed
from headrace.sql.options import Option, read_duration, read_options
from headrace.sql.statements import Cursor, Statement
from headrace.sql.text import Refused, Source, word
from headrace.sql.unique import UNIQUE_OPTIONS, with_unique
from headrace.sql.watermarks import Watermark, read_watermark

__all__ = ["STREAM_OPTIONS", "read_stream"]

STREAM_OPTIONS = ("topic", "format", "key", "timestamp_format", "idle_timeout", *UNIQUE_OPTIONS)


@dataclass
class _Body:
    """What stands between the parentheses, as far as it could be read."""

    columns: list[Column] = field(default_factory=list)
    computed: list[Computed] = field(default_factory=list)
    locations: dict[str, Location] = field(default_factory=dict)
    watermark: Watermark | None = None


def read_stream(
    statement: Statement, cursor: Cursor, problems: list[Problem]
) -> tuple[Stream, bool]:
    """Read what follows CREATE STREAM; single problems are added, and the rest is read on.

    Returned with the stream: whether all its columns and its watermark could be read, so that
    views over it can be judged. Refused: so little could be read that there is no stream to return.
    """
    source = statement.source
    name = cursor.take_name("name of the stream")
    if cursor.next_is("WITH"):
        raise cursor.refuse(
            f"stream {name.text} has no columns; write CREATE STREAM {name.text} "
            "(column TYPE, ...) WITH (...)"
        )
    inside = cursor.take_parenthesised(f"the columns of {name.text}")
    before = len(problems)
    body = _read_body(source, name, inside, problems)
    sound = len(problems) == before
    options: Mapping[str, Option] = {}
    if cursor.accept("WITH"):
        options = read_options(cursor, "CREATE STREAM", STREAM_OPTIONS, problems)
    if not cursor.done:
        raise cursor.refuse(
            f"the statement should end here{cursor.found()}; write ; between statements"
        )
    idle_us = read_duration(source, options, "idle_timeout", problems)
    stream = _build(
        statement, name, body, options, DEFAULT_IDLE_TIMEOUT_US if idle_us is None else idle_us
    )
    stream = with_unique(stream, source, options, problems)
    locations = body.locations | {
        key: source.location(each.value.start) for key, each in options.items()
    }
    locations["name"] = source.location(name.start)
    if sound or body.columns:
        problems += validate_stream(stream, locations)
    return stream, sound


def _build(
    statement: Statement,
    name: Token,
    body: _Body,
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


def _read_body(
    source: Source, name: Token, tokens: Sequence[Token], problems: list[Problem]
) -> _Body:
    body = _Body()
    computed: list[Written] = []
    if not tokens:
        message = f"stream {name.text} has no columns; write (column TYPE, ...)"
        problems.append(source.problem(name, message))
        return body
    for part in split_columns(tokens):
        try:
            if not part:
                raise source.refuse(
                    name,
                    f"there is an empty column in {name.text}; remove the extra comma",
                )
            cursor = Cursor(source, part)
            if word(part[0]) == "WATERMARK" and word(cursor.peek(1)) == "FOR":
                if body.watermark is not None:
                    raise source.refuse(part[0], "a stream has one WATERMARK; remove this one")
                body.watermark = read_watermark(cursor)
                body.locations["watermark"] = source.location(body.watermark.column.start)
                continue
            column = read_column(cursor, len(body.columns))
            if isinstance(column, Written):
                computed.append(column)
            else:
                body.columns.append(column)
                body.locations[f"column {len(body.columns) - 1}"] = source.location(part[0].start)
        except Refused as refused:
            problems += refused.problems
    body.computed = bind_computed(source, name.text, body.columns, computed, problems)
    for number, each in enumerate(body.computed, len(body.columns)):
        body.locations[f"column {number}"] = each.location
    return body
