"""`CREATE MATERIALIZED VIEW name WITH (...) AS SELECT ...` into a View."""

from collections.abc import Mapping
from dataclasses import replace

from headrace.errors import Problem
from headrace.model.definitions import View
from headrace.model.graph import outputs_of, streams_of, walk, window_of
from headrace.model.names import name_fault
from headrace.model.nodes import (
    Aggregate,
    AssignWindows,
    Filter,
    Generate,
    Node,
    Project,
    Union,
    Window,
)
from headrace.model.validate import validate_view
from headrace.sql.column_lists import read_names
from headrace.sql.options import Option, read_duration, read_options
from headrace.sql.query.binder import parse, read_query
from headrace.sql.query.reading.trees import Tree
from headrace.sql.query.relations.from_clause import name_columns
from headrace.sql.query.relations.names import Names
from headrace.sql.sinks import read_emit
from headrace.sql.statements import Cursor, Statement

__all__ = ["VIEW_OPTIONS", "read_view"]

VIEW_OPTIONS = ("allowed_lateness", "late", "retention", "time_zone", "emit", "changes")


def read_view(
    statement: Statement, cursor: Cursor, names: Names, problems: list[Problem]
) -> tuple[View | None, Tree]:
    """Read what follows CREATE MATERIALIZED VIEW; problems are added, and then there is no view.

    Returned with it: the tree of its query.

    Refused: nothing more could be read.
    """
    source, before = statement.source, len(problems)
    name = cursor.take_name("name of the view")
    how = f"write CREATE MATERIALIZED VIEW {name.text} AS SELECT ..."
    columns = read_names(cursor, how) if cursor.next_is("(") else ()
    options: Mapping[str, Option] = {}
    if cursor.accept("WITH"):
        options = read_options(cursor, "CREATE MATERIALIZED VIEW", VIEW_OPTIONS, problems)
    if not cursor.accept("AS"):
        raise cursor.refuse(f"AS is expected here{cursor.found()}; {how}")
    locations = {key: source.location(option.value.start) for key, option in options.items()}
    locations["name"] = source.location(name.start)
    lateness_us = read_duration(source, options, "allowed_lateness", problems)
    retention_us = read_duration(source, options, "retention", problems)
    if not any(cursor.next_is(each) for each in ("SELECT", "WITH", "(")):
        raise cursor.refuse(f"SELECT is expected here{cursor.found()}")
    tree = parse(source, cursor.rest(), problems)
    relation = read_query(tree, names, problems, is_renamed=bool(columns))
    if relation is not None:
        relation = name_columns(tree, relation, columns, name, problems)
    if relation is None or len(problems) > before:
        fault = name_fault("view", name.text)
        problems += [Problem(locations["name"], fault)] if fault else []
        return None, tree
    query = relation.node
    window = window_of(query)
    if "time_zone" in options:
        zone = options["time_zone"]
        if window is None and not any(isinstance(each, AssignWindows) for each in walk(query)):
            problems.append(
                source.problem(
                    zone.value,
                    f"time_zone of {name.text}: it says when the days of windows begin, and there "
                    "is no window; remove it, or group by window(<event time>, '1 day')",
                )
            )
            return None, tree
        query = _with_zone(query, zone.text)
    emit, emit_every_us = read_emit(source, options, problems)
    if "late" in options and options["late"].text == "topic" and window is None:
        # The default, which a definition cannot tell from nothing.
        problems.append(
            source.problem(
                options["late"].value,
                f"late of {name.text}: without a window no record is ever late; remove it, or "
                "group by window(...)",
            )
        )
        return None, tree
    view = View(
        name.text,
        query,
        lateness_us or 0,
        emit=emit,
        emit_every_us=emit_every_us,
        changes=options["changes"].text.strip().lower() if "changes" in options else "followed",
        late=options["late"].text if "late" in options else "topic",
        retention_us=retention_us,
        reads=names.read_names,
        sql=statement.sql,
        location=statement.location,
    )
    outputs = enumerate(outputs_of(query))
    locations |= {f"output {index}": each.location for index, each in outputs}
    problems += validate_view(
        view, {name: names.streams[name] for name in streams_of(query)}, locations
    )
    return view, tree


def _with_zone(node: Node, zone: str) -> Node:
    """Return a query whose windows are days of a time zone."""
    match node:
        case Aggregate(window=Window()) | AssignWindows():
            assert node.window is not None
            below = _with_zone(node.input, zone)
            return replace(node, input=below, window=replace(node.window, zone=zone))
        case Aggregate() | Project() | Filter() | Generate():
            return replace(node, input=_with_zone(node.input, zone))
        case Union():
            return Union(tuple(_with_zone(each, zone) for each in node.inputs))
        case _:
            return node
