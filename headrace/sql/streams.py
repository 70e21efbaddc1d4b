"""`CREATE STREAM name (columns, WATERMARK ...) WITH (...)` into a Stream."""

from collections.abc import Mapping

from sqlglot import Token

from headrace.errors import Problem
from headrace.model.definitions import DEFAULT_IDLE_TIMEOUT_US, Stream
from headrace.model.nodes import ARRIVAL
from headrace.model.validate import validate_stream
from headrace.sql.bodies import Body, read_body
from headrace.sql.options import Option, read_duration, read_options
from headrace.sql.statements import Cursor, Statement
from headrace.sql.unique import UNIQUE_OPTIONS, with_unique

__all__ = ["STREAM_OPTIONS", "read_stream"]

STREAM_OPTIONS = ("topic", "format", "key", "timestamp_format", "idle_timeout", *UNIQUE_OPTIONS)


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
    body = read_body(source, name, inside, problems)
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
