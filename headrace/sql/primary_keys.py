"""What a table has that a stream has not: its primary key, and where records have it."""

from collections.abc import Mapping
from dataclasses import replace

from headrace.errors import Problem
from headrace.model.definitions import Stream
from headrace.sql.bodies import Body
from headrace.sql.options import Option
from headrace.sql.text import Source

__all__ = ["no_primary_key", "nullable_problems", "removal_problems", "with_primary_key"]

#: The one thing that `removed_records` can say.
LOSE_ROWS = "lose rows"


def with_primary_key(stream: Stream, body: Body, options: Mapping[str, Option]) -> Stream:
    """Return the stream of a table's changes, with its key, whose columns are never null."""
    spelling = {column.name.lower(): column.name for column in stream.columns}
    key = [spelling.get(str(each.text).lower(), str(each.text)) for each in body.primary_key]
    columns = [
        replace(each, nullable=False) if each.name in key else each for each in stream.columns
    ]
    return replace(
        stream,
        columns=tuple(columns),
        format=stream.format if "format" in options else "upsert",
        primary_key=tuple(key),
        key_from=options["key_from"].text.lower() if "key_from" in options else "key",
        decimal_format=None
        if "decimal_format" not in options
        else options["decimal_format"].text.lower(),
        source_table=options["source_table"].text if "source_table" in options else None,
        may_lose_rows="removed_records" in options,
    )


def nullable_problems(source: Source, body: Body) -> list[Problem]:
    """Return a problem for each column of the primary key that says it may be null."""
    return [
        source.problem(
            body.nulls[name],
            f"PRIMARY KEY {each.text}: a key is never null; remove NULL",
        )
        for each in body.primary_key
        if (name := str(each.text).lower()) in body.nulls
    ]


def removal_problems(source: Source, options: Mapping[str, Option]) -> list[Problem]:
    """Return what is wrong with what is said of records that the topic removes."""
    option = options.get("removed_records")
    if option is None or option.text.lower() == LOSE_ROWS:
        return []
    return [
        source.problem(
            option.value,
            f"removed_records {option.text!r} is not known; write {LOSE_ROWS!r}, if rows may be "
            "missing once the topic removed the records that they are made of",
        )
    ]


def no_primary_key(stream: Stream) -> str:
    """Return what is wrong with a table that says no primary key."""
    first = stream.columns[0].name if stream.columns else "column"
    return (
        f"table {stream.name} has no primary key, so no change could be told from a new row; write "
        f"{first} TYPE PRIMARY KEY, or PRIMARY KEY (a, b) behind the columns. For records that are "
        f"never changed write CREATE STREAM"
    )
