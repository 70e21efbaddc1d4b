"""`CREATE MATERIALIZED VIEW name WITH (...) AS SELECT ...` into a View."""

from collections.abc import Mapping
from dataclasses import replace

from headrace.errors import Problem
from headrace.model.definitions import Stream, View
from headrace.model.names import closest, name_fault
from headrace.model.validate import validate_view
from headrace.sql.options import Option, read_duration, read_options
from headrace.sql.queries import QueryReader
from headrace.sql.select import Clauses, read_clauses
from headrace.sql.sinks import read_emit
from headrace.sql.statements import Cursor, Statement
from headrace.sql.text import Source, word

__all__ = ["VIEW_OPTIONS", "read_view"]

VIEW_OPTIONS = ("allowed_lateness", "late", "retention", "time_zone", "emit")

#: Streams by name in lower case; None for one whose own statement was refused.
Streams = Mapping[str, Stream | None]


def read_view(
    statement: Statement, cursor: Cursor, streams: Streams, problems: list[Problem]
) -> View | None:
    """Read what follows CREATE MATERIALIZED VIEW; problems are added, and then there is no view.

    Refused: nothing more could be read.
    """
    source, before = statement.source, len(problems)
    name = cursor.take_name("name of the view")
    options: Mapping[str, Option] = {}
    if cursor.accept("WITH"):
        options = read_options(cursor, "CREATE MATERIALIZED VIEW", VIEW_OPTIONS, problems)
    if not cursor.accept("AS"):
        raise cursor.refuse(
            f"AS is expected here{cursor.found()}; write CREATE MATERIALIZED VIEW {name.text} "
            "AS SELECT ..."
        )
    places = {key: source.location(option.value.start) for key, option in options.items()}
    places["name"] = source.location(name.start)
    lateness_us = read_duration(source, options, "allowed_lateness", problems)
    retention_us = read_duration(source, options, "retention", problems)
    clauses = read_clauses(cursor, problems)
    stream = _find_stream(source, clauses, streams, problems)
    fault = name_fault("view", name.text)
    if stream is None:
        problems += [Problem(places["name"], fault)] if fault else []
        return None
    query = QueryReader(source, stream, clauses, problems).read()
    if query is None or len(problems) > before:
        problems += [Problem(places["name"], fault)] if fault else []
        return None
    if "time_zone" in options:
        zone = options["time_zone"]
        if query.window is None:
            problems.append(
                source.problem(
                    zone.value,
                    f"time_zone of {name.text}: it says when the days of windows begin, and there "
                    "is no window; remove it, or group by window(<event time>, '1 day')",
                )
            )
            return None
        query = replace(query, window=replace(query.window, zone=zone.text))
    emit, emit_every_us = read_emit(source, options, problems)
    if "late" in options and options["late"].text == "topic" and query.window is None:
        # The default, which a definition cannot tell from nothing.
        problems.append(
            source.problem(
                options["late"].value,
                f"late of {name.text}: without a window no record is ever late; remove it, or "
                "group by window(...)",
            )
        )
        return None
    view = View(
        name.text,
        query,
        lateness_us or 0,
        emit=emit,
        emit_every_us=emit_every_us,
        late=options["late"].text if "late" in options else "topic",
        retention_us=retention_us,
        sql=statement.sql,
        location=statement.location,
    )
    places |= {f"output {index}": each.location for index, each in enumerate(query.outputs)}
    problems += validate_view(view, stream, places)
    return view


def _find_stream(
    source: Source, clauses: Clauses, streams: Streams, problems: list[Problem]
) -> Stream | None:
    name, alias = clauses.stream, clauses.alias
    if name is None:
        return None
    if alias is not None and (name_fault("alias", alias.text) or word(alias) == "WINDOW"):
        problems.append(source.problem(alias, f"alias {alias.text} is reserved; choose another"))
    if name.text.lower() not in streams:
        known = [stream.name for stream in streams.values() if stream is not None]
        problems.append(
            source.problem(
                name,
                f"there is no stream {name.text}{closest(name.text, known)}; a view reads a "
                "stream, so write CREATE STREAM first (views over views are not built yet)",
            )
        )
    return streams.get(name.text.lower())
