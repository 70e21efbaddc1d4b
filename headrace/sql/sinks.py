"""`CREATE SINK name FROM view WITH (...)` into a Sink, and `emit` of a view."""

from collections.abc import Mapping

from headrace.errors import Problem
from headrace.model.definitions import Sink
from headrace.model.validate import validate_sink
from headrace.sql.durations import parse_duration
from headrace.sql.options import Option, read_options
from headrace.sql.statements import Cursor, Statement
from headrace.sql.text import Source

__all__ = ["SINK_OPTIONS", "read_emit", "read_sink"]

SINK_OPTIONS = ("topic", "mode", "key")


def read_sink(statement: Statement, cursor: Cursor, problems: list[Problem]) -> Sink:
    """Read what follows CREATE SINK; problems are added. Refused: nothing more could be read."""
    source = statement.source
    name = cursor.take_name("name of the sink")
    how = f"write CREATE SINK {name.text} FROM view WITH (topic = '...')"
    if not cursor.accept("FROM"):
        raise cursor.refuse(f"FROM is expected here{cursor.found()}; {how}")
    if cursor.next_is("(") or cursor.next_is("SELECT"):
        raise cursor.refuse(
            "a sink takes a view by its name; write the query as CREATE MATERIALIZED VIEW, and the "
            "sink FROM that"
        )
    view = cursor.take_name("name of the view")
    options: Mapping[str, Option] = {}
    if cursor.accept("WITH"):
        options = read_options(cursor, "CREATE SINK", SINK_OPTIONS, problems)
    if not cursor.done:
        raise cursor.refuse(
            f"the statement should end here{cursor.found()}; write ; between statements"
        )
    sink = Sink(
        name.text,
        view.text,
        options["topic"].text if "topic" in options else name.text,
        options["mode"].text.lower() if "mode" in options else "upsert",
        _read_key(options["key"].text) if "key" in options else (),
        sql=statement.sql,
        location=statement.location,
    )
    locations = {key: source.location(each.value.start) for key, each in options.items()}
    locations |= {"name": source.location(name.start), "view": source.location(view.start)}
    problems += validate_sink(sink, locations)
    return sink


def _read_key(text: str) -> tuple[str, ...]:
    """Return the names of columns, which commas separate; an empty one is refused as unknown."""
    return tuple(name.strip() for name in text.split(","))


def read_emit(
    source: Source, options: Mapping[str, Option], problems: list[Problem]
) -> tuple[str, int]:
    """Return when a view's sinks are told: `changes`, `final`, or `every` and how long."""
    option = options.get("emit")
    if option is None:
        return "changes", 0
    word, _, rest = option.text.strip().partition(" ")
    if word.lower() != "every":
        return option.text.strip().lower(), 0
    try:
        return "every", parse_duration(rest.strip().strip("'"))
    except ValueError as error:
        problems.append(source.problem(option.value, f"emit: {error}"))
        return "changes", 0
