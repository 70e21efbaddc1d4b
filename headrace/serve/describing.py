"""Describe what a project defines, and how its parts hang together, as JSON values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.model.definitions import Project, Sink, Stream, View
from headrace.model.graph import streams_of, window_of
from headrace.plan.stages import Pipeline, Publish, tables_of
from headrace.plan.tables import Table
from headrace.plan.terms import Reference

__all__ = ["describe_graph", "describe_project"]

Json = dict[str, Any]

_START, _END = "window_start", "window_end"


def describe_project(project: Project, pipelines: Iterable[Pipeline]) -> Json:
    """Return streams, views and sinks: their text, columns, keys and options."""
    tables = {(t.view, t.version): t for each in pipelines for t in tables_of(each.folds)}
    by_view: dict[str, Table] = {view: table for (view, _), table in tables.items()}
    return {
        "streams": [_stream(stream, project) for stream in project.streams],
        "views": [_view(view, by_view.get(view.name)) for view in project.views],
        "queries": [
            {"name": each.name, "kind": each.kind, "sql": each.sql, "reads": list(each.reads)}
            for each in project.queries
        ],
        "sinks": [_sink(sink) for sink in project.sinks],
    }


def _stream(stream: Stream, project: Project) -> Json:
    nullable = {column.name: column.nullable for column in stream.columns}
    return {
        "name": stream.name,
        "kind": stream.kind,
        "format": stream.format,
        "primary_key": list(stream.primary_key),
        "topic": stream.topic,
        "sql": stream.sql,
        "columns": [
            {
                "name": name,
                "type": None if type is None else str(type),
                "nullable": nullable.get(name, True),
            }
            for name, type in stream.outline
        ],
        "event_time": stream.event_time,
        "delay_us": stream.delay_us,
        "adaptive": stream.adaptive is not None,
        "key": stream.key,
        "unique": stream.unique,
        "side_topics": _side_topics(stream),
        "file": stream.location.file,
        "line": stream.location.line,
        "readers": [
            view.name
            for view in project.views
            if stream.name in streams_of(view.query) and view.name != stream.name
        ],
    }


def _view(view: View, table: Table | None) -> Json:
    window = window_of(view.query)
    return {
        "name": view.name,
        "kind": view.kind,
        "version": None if table is None else table.version,
        "sql": view.sql,
        "columns": _columns(table),
        "key": [] if table is None else [part.name for part in table.key],
        "window": None
        if window is None
        else {
            "kind": window.kind,
            "size_us": window.size_us,
            "slide_us": window.slide_us,
            "start_column": _edge(table, _START),
            "end_column": _edge(table, _END),
        },
        "inputs": list(streams_of(view.query)),
        "emit": view.emit,
        "allowed_lateness_us": view.allowed_lateness_us,
        "retention_us": view.retention_us,
        "topic": view.topic,
        "side_topics": _side_topics(view),
        "file": view.location.file,
        "line": view.location.line,
    }


def _columns(table: Table | None) -> list[Json]:
    outputs = () if table is None else table.outputs
    return [{"name": output.name, "type": str(output.type)} for output in outputs]


def _edge(table: Table | None, edge: str) -> str | None:
    """Return the column that shows an edge of the window as it is."""
    for output in () if table is None else table.outputs:
        if isinstance(output.term, Reference) and output.term.name == edge:
            return output.name
    return None


def _side_topics(definition: Stream | View) -> Json:
    put = Publish.of(definition)
    found = {"dead": put.dead, "late": put.late, "duplicate": put.duplicate}
    return {kind: topic for kind, topic in found.items() if topic is not None}


def _sink(sink: Sink) -> Json:
    return {
        "name": sink.name,
        "view": sink.view,
        "topic": sink.topic,
        "mode": sink.mode,
        "key": list(sink.key),
        "sql": sink.sql,
    }


def describe_graph(project: Project, status: Mapping[str, Any]) -> Json:
    """Return topics, streams, operators, views and sinks, and how many records went between them.

    The numbers only grow while the versions are the same; rates are differences over time.
    """
    graph = _Graph()
    streams = _newest(status["streams"])
    views = _newest(status["views"])
    operators = {each["stream"]: each["operator"] for each in status["operators"]}
    for stream in project.streams:
        known = streams.get(stream.name, {})
        counters = known.get("counters", {})
        source = graph.node("topic", stream.topic)
        if stream.primary_key:  # its changes are drawn as the table
            state = views.get(stream.name, {}).get("state", "")
            graph.edge(source, graph.node("view", stream.name, state), counters.get("read"))
            continue
        found = graph.node("stream", stream.name, known.get("state", ""))
        graph.edge(source, found, counters.get("read"))
        if stream.unique is not None:
            name = operators.get(stream.name, "deduplicate")
            step = graph.node("operator", f"{stream.name}/{name}", label=name, stream=stream.name)
            graph.edge(found, step, counters.get("read"))
    for view in project.views:
        if view.kind == "table":
            continue
        known = views.get(view.name, {})
        counters = known.get("counters", {})
        found = graph.node("view", view.name, known.get("state", ""))
        for name in streams_of(view.query):
            unique = project.stream(name).unique is not None
            source = f"operator:{name}/{operators.get(name, 'deduplicate')}"
            several = len(streams_of(view.query)) > 1
            seen = None if several else counters.get("seen")
            graph.edge(source if unique else f"stream:{name}", found, seen)
        if view.topic is not None:
            graph.edge(found, graph.node("topic", view.topic), counters.get("matched"))
    told = {sink["name"]: sink for sink in status["sinks"]}
    for each in project.sinks:
        sink = graph.node("sink", each.name, told.get(each.name, {}).get("state", ""))
        graph.edge(f"view:{each.view}", sink, None)
        graph.edge(sink, graph.node("topic", each.topic), None)
    return graph.to_json()


def _newest(versions: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return one version of each name: the live one, else the last."""
    found: dict[str, Mapping[str, Any]] = {}
    for each in versions:
        if found.get(each["name"], {}).get("state") != "live":
            found[each["name"]] = each
    return found


class _Graph:
    def __init__(self) -> None:
        self._nodes: dict[str, Json] = {}
        self._edges: list[Json] = []

    def node(self, kind: str, name: str, state: str = "", *, label: str = "", **more: str) -> str:
        id = f"{kind}:{name}"
        entry = {"id": id, "kind": kind, "name": name, "label": label or name, "state": state}
        self._nodes.setdefault(id, entry | more)
        return id

    def edge(self, source: str, target: str, records: int | None) -> None:
        self._edges.append({"from": source, "to": target, "records": records})

    def to_json(self) -> Json:
        return {"nodes": list(self._nodes.values()), "edges": self._edges}
