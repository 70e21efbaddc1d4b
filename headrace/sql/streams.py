"""`CREATE STREAM name (columns, WATERMARK ...) WITH (...)` into a Stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import Token, TokenType

from headrace.errors import Location, Problem
from headrace.model.definitions import DEFAULT_IDLE_TIMEOUT_US, Stream
from headrace.model.validate import validate_stream
from headrace.schema.types import Column, parse_type
from headrace.sql.options import Option, read_duration, read_options
from headrace.sql.statements import Cursor, Statement, nesting
from headrace.sql.text import Refused, Source, word, words
from headrace.sql.unique import UNIQUE_OPTIONS, with_unique
from headrace.sql.watermarks import Watermark, read_watermark

__all__ = ["STREAM_OPTIONS", "read_stream"]

STREAM_OPTIONS = ("topic", "format", "key", "timestamp_format", "idle_timeout", *UNIQUE_OPTIONS)


@dataclass
class _Body:
    """What stands between the parentheses, as far as it could be read."""

    columns: list[Column] = field(default_factory=list)
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
    if cursor.next_is("AS") or cursor.next_is("WITH"):
        raise (
            _derived(cursor)
            if cursor.next_is("AS")
            else cursor.refuse(
                f"stream {name.text} has no columns; write CREATE STREAM {name.text} "
                "(column TYPE, ...) WITH (...)"
            )
        )
    inside = cursor.take_parenthesised(f"the columns of {name.text}")
    before = len(problems)
    body = _read_body(source, name, inside, problems)
    sound = len(problems) == before
    options: Mapping[str, Option] = {}
    if cursor.accept("WITH"):
        options = read_options(cursor, "CREATE STREAM", STREAM_OPTIONS, problems)
    if cursor.next_is("AS"):
        raise _derived(cursor)
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
    spelling = {column.name.lower(): column.name for column in body.columns}

    def text(option: str) -> str | None:
        return options[option].text if option in options else None

    def column(written: str | None) -> str | None:
        return None if written is None else spelling.get(written.lower(), written)

    topic, encoding = text("topic"), text("format")
    watermark = body.watermark
    return Stream(
        name=name.text,
        columns=tuple(body.columns),
        topic=name.text if topic is None else topic,
        format="json" if encoding is None else encoding.lower(),
        event_time=column(watermark.column.text) if watermark else None,
        delay_us=watermark.delay_us if watermark else 0,
        adaptive=watermark.adaptive if watermark else None,
        idle_timeout_us=idle_timeout_us,
        key=column(text("key")),
        timestamp_format=text("timestamp_format"),
        sql=statement.sql,
        location=statement.location,
    )


def _derived(cursor: Cursor) -> Refused:
    return cursor.refuse(
        "CREATE STREAM ... AS is not built yet; give the stream its columns, and write the query "
        "as CREATE MATERIALIZED VIEW ... AS SELECT ..."
    )


def _read_body(
    source: Source, name: Token, tokens: Sequence[Token], problems: list[Problem]
) -> _Body:
    body = _Body()
    if not tokens:
        message = f"stream {name.text} has no columns; write (column TYPE, ...)"
        problems.append(source.problem(name, message))
        return body
    for part in _split_items(tokens):
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
            else:
                body.columns.append(_read_column(cursor))
                body.locations[f"column {len(body.columns) - 1}"] = source.location(part[0].start)
        except Refused as refused:
            problems += refused.problems
    return body


def _split_items(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """Split at commas outside of parentheses and of `<...>` within types."""
    items: list[tuple[Token, ...]] = []
    begin = depth = 0
    for index, token in enumerate(tokens):
        depth += nesting(token)
        if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            if set(token.text) == {"<"}:
                depth += len(token.text)
            elif set(token.text) == {">"}:
                depth -= len(token.text)
        if depth == 0 and token.token_type == TokenType.COMMA:
            items.append(tuple(tokens[begin:index]))
            begin = index + 1
    return [*items, tuple(tokens[begin:])]


def _read_column(cursor: Cursor) -> Column:
    name = cursor.take_name("name of a column")
    begin = cursor.at
    while not (cursor.done or cursor.next_is("NOT") or cursor.next_is("NULL")):
        token = cursor.take("the type")
        if cursor.at - begin > 1 and word(token).partition(" ")[0] in _NOT_TYPES:
            raise cursor.source.refuse(
                token,
                f"column {name.text}: {word(token)} is not supported; after the type only NOT "
                "NULL is allowed",
            )
    tokens = cursor.tokens[begin : cursor.at]
    if not tokens:
        raise cursor.source.refuse(name, f"column {name.text} has no type; write {name.text} TYPE")
    nullable = not cursor.accept("NOT", "NULL")
    if nullable:
        cursor.accept("NULL")
    if not cursor.done:
        raise cursor.refuse(
            f"column {name.text}: after the type only NOT NULL is allowed{cursor.found()}"
        )
    try:
        type_ = parse_type(_without_comments(cursor.source, tokens))
    except ValueError as error:
        raise cursor.source.refuse(tokens[0], f"column {name.text}: {error}") from error
    return Column(name.text, type_, nullable)


_NOT_TYPES = words("AS CHECK COLLATE COMMENT DEFAULT GENERATED PRIMARY REFERENCES UNIQUE")


def _without_comments(source: Source, tokens: Sequence[Token]) -> str:
    return " ".join(source.text[token.start : token.end + 1] for token in tokens)
