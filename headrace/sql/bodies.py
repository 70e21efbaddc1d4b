"""`(columns, WATERMARK FOR ...)`: what stands between the parentheses of a stream."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlglot import Token

from headrace.errors import Location, Problem
from headrace.model.definitions import Computed
from headrace.schema.types import Column
from headrace.sql.columns import PrimaryKey, accept_primary_key, read_column, split_columns
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
    primary_key: list[Token] = field(default_factory=list)
    nulls: dict[str, Token] = field(default_factory=dict)  # by column: where it may be null

    def key(self, source: Source, columns: Sequence[Token]) -> None:
        """Note the primary key. Refused: there is one already."""
        if self.primary_key:
            raise source.refuse(
                columns[0],
                "a table has one PRIMARY KEY; of several columns write PRIMARY KEY (a, b) behind "
                "all columns",
            )
        self.primary_key += columns


def read_body(
    source: Source,
    name: Token,
    tokens: Sequence[Token],
    problems: list[Problem],
    *,
    is_table: bool = False,
) -> Body:
    """Read columns and the watermark; single problems are added, and the rest is read on.

    A table has a primary key as well.
    """
    body = Body()
    computed: list[Written] = []
    if not tokens:
        kind = "table" if is_table else "stream"
        message = f"{kind} {name.text} has no columns; write (column TYPE, ...)"
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
                    raise source.refuse(part[0], "there is one WATERMARK; remove this one")
                body.watermark = read_watermark(cursor)
                body.locations["watermark"] = source.location(body.watermark.column.start)
                continue
            if is_table and (key := accept_primary_key(cursor)):
                body.key(source, key)
                continue
            column = read_column(cursor, len(body.columns), is_table=is_table)
            if isinstance(column, PrimaryKey):
                body.key(source, (part[0],))
                column = column.column
            if isinstance(column, Written) and is_table:
                raise source.refuse(
                    part[0],
                    f"column {part[0].text}: the columns of a table are read, not computed; "
                    "compute it in a view over the table",
                )
            if isinstance(column, Written):
                computed.append(column)
            else:
                if (null := _null_of(part)) is not None:
                    body.nulls[column.name.lower()] = null
                body.columns.append(column)
                body.locations[f"column {len(body.columns) - 1}"] = source.location(part[0].start)
        except Refused as refused:
            problems += refused.problems
    body.computed = bind_computed(source, name.text, body.columns, computed, problems)
    for number, each in enumerate(body.computed, len(body.columns)):
        body.locations[f"column {number}"] = each.location
    return body


def _null_of(part: Sequence[Token]) -> Token | None:
    """Return where a column says that it may be null, and not NOT NULL."""
    for before, token in pairwise(part):
        if word(token) == "NULL" and word(before) != "NOT":
            return token
    return None
