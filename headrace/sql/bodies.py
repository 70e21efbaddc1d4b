"""`(columns, WATERMARK FOR ...)`: what stands between the parentheses of a stream."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import Token

from headrace.errors import Location, Problem
from headrace.model.definitions import Computed
from headrace.schema.types import Column
from headrace.sql.columns import read_column, split_columns
from headrace.sql.computed import Written, bind_computed
from headrace.sql.statements import Cursor
from headrace.sql.text import Refused, Source, word
from headrace.sql.watermarks import Watermark, read_watermark

__all__ = ["Body", "read_body"]


@dataclass
class Body:
    """What stands between the parentheses, as far as it could be read."""

    columns: list[Column] = field(default_factory=list)
    computed: list[Computed] = field(default_factory=list)
    locations: dict[str, Location] = field(default_factory=dict)
    watermark: Watermark | None = None


def read_body(
    source: Source, name: Token, tokens: Sequence[Token], problems: list[Problem]
) -> Body:
    """Read columns and the watermark; single problems are added, and the rest is read on."""
    body = Body()
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
