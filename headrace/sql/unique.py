"""`WITH (unique = 'id', unique_within = '1 hour', duplicates = 'topic')` of a stream."""

from collections.abc import Mapping
from dataclasses import replace

from headrace.errors import Problem
from headrace.model.definitions import Stream
from headrace.sql.durations import parse_duration
from headrace.sql.options import Option
from headrace.sql.text import Source

__all__ = ["UNIQUE_OPTIONS", "with_unique"]

UNIQUE_OPTIONS = ("unique", "unique_within", "duplicates")


def with_unique(
    stream: Stream, source: Source, options: Mapping[str, Option], problems: list[Problem]
) -> Stream:
    """Return a stream with its unique id; a horizon that is none is added to the problems."""
    spelling = {name.lower(): name for name, _ in stream.outline}
    unique, duplicates = options.get("unique"), options.get("duplicates")
    return replace(
        stream,
        unique=None if unique is None else spelling.get(unique.text.lower(), unique.text),
        unique_within_us=_read_within(source, options, problems),
        duplicates=Stream.duplicates if duplicates is None else duplicates.text.lower(),
    )


def _read_within(source: Source, options: Mapping[str, Option], problems: list[Problem]) -> int:
    option = options.get("unique_within")
    if option is None:
        return 0
    try:
        within_us = parse_duration(option.text)
    except ValueError as error:
        fault = str(error)
    else:
        if within_us > 0:
            return within_us
        fault = (
            f"{option.text!r} is not positive, so no record would be a duplicate; write how long "
            "ids are remembered, such as '1 hour'"
        )
    problems.append(source.problem(option.value, f"unique_within: {fault}"))
    return 1  # it is said already; what else is wrong is still found
