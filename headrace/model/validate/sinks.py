"""What holds for every sink: its name, its topic, and that nothing comes back to where it began."""

from collections.abc import Mapping

from headrace.errors import Location, Problem
from headrace.model.definitions import Project, Sink, View
from headrace.model.graph import aggregate_of, outputs_of, passed_on, streams_of
from headrace.model.names import closest, name_fault, topic_fault
from headrace.model.nodes import WINDOW_COLUMNS, key_column
from headrace.model.sinks import key_parts

__all__ = ["MODES", "sink_problems", "validate_sink"]

MODES = ("upsert", "retract", "debezium")


def validate_sink(sink: Sink, locations: Mapping[str, Location]) -> list[Problem]:
    """Return every problem of one sink by itself; `locations` are as in `findings.py`."""
    faults = [("name", name_fault("sink", sink.name)), ("topic", topic_fault(sink.topic))]
    if sink.mode not in MODES:
        message = (
            f"mode {sink.mode!r} is not known{closest(sink.mode, MODES)}; write 'upsert' (the "
            "newest row of a key, and a tombstone for one that is gone), 'retract' (what no "
            "longer holds is sent too) or 'debezium' (before, after and op)"
        )
        faults.append(("mode", message))
    return [
        Problem(locations.get(subject, sink.location), fault)
        for subject, fault in faults
        if fault is not None
    ]


def sink_problems(
    project: Project,
    side_topics: set[str],
    *,
    whole: bool,
    refused: frozenset[str] = frozenset(),
) -> list[Problem]:
    """Return what is wrong between sinks, and between them and everything else.

    `whole` is false when some views could not be read: a sink of an unknown view proves nothing.
    Nor does one of a definition that was `refused`, by name in lower case.
    """
    problems: list[Problem] = []
    views = {view.name: view for view in project.views if view.topic is None}
    taken: dict[str, Sink] = {}
    for sink in project.sinks:
        if sink.view not in views:
            if whole and sink.view.lower() not in refused:
                problems.append(Problem(sink.location, _fed_by(project, sink)))
            continue
        first = taken.setdefault(sink.topic, sink)
        if first is not sink:
            message = (
                f"sink {sink.name} writes to {sink.topic}, as {first.name} at {first.location} "
                "does; their rows could not be told apart, so give each its own topic"
            )
            problems.append(Problem(sink.location, message))
        if sink.topic in side_topics:
            message = (
                f"sink {sink.name} writes to {sink.topic}, a side topic of this project; "
                "choose another topic"
            )
            problems.append(Problem(sink.location, message))
        problems += _key_problems(sink, views[sink.view])
    problems += [
        Problem(
            sink.location,
            f"sink {sink.name} writes to {sink.topic}, which feeds the view that it comes from: "
            "its rows would come back endlessly; choose another topic",
        )
        for sink in project.sinks
        if sink.view in views
        and any(_feeds(project, sink.topic, name) for name in streams_of(views[sink.view].query))
    ]
    return problems


def _fed_by(project: Project, sink: Sink) -> str:
    """Return what is wrong with a sink that no view feeds."""
    query = next((each for each in project.queries if each.name == sink.view), None)
    if query is not None and query.topic is not None:
        return (
            f"sink {sink.name} is fed by {sink.view}, a stream whose records go to the topic "
            f"{query.topic} already; remove the sink, or write CREATE MATERIALIZED VIEW name AS "
            f"SELECT * FROM {sink.view}, and the sink FROM that"
        )
    if query is not None:
        return (
            f"sink {sink.name} is fed by {sink.view}, which is a name for a query and has no rows "
            f"of its own; write CREATE MATERIALIZED VIEW name AS SELECT * FROM {sink.view}, and "
            f"the sink FROM that"
        )
    known = closest(sink.view, [view.name for view in project.views if view.topic is None])
    return f"sink {sink.name} is fed by {sink.view}, which is not a view{known}"


def _own_key_problems(sink: Sink, view: View) -> list[Problem]:
    """Return what is wrong with a key that a sink names itself."""
    outputs = [output.name for output in outputs_of(view.query)]
    for name in sink.key:
        if name not in outputs:
            known = closest(name, outputs) or f"; it has {', '.join(outputs)}"
            message = f"sink {sink.name}: its key {name!r} is not a column of {view.name}{known}"
            return [Problem(sink.location, message)]
    if sink.mode != "upsert":
        return []
    advice = "; add it, or write mode = 'retract' or 'debezium', where keys need not be unique"
    if aggregate_of(view.query) is None:
        return [
            Problem(
                sink.location,
                f"sink {sink.name}: the rows of {view.name} are records, which only their place in "
                f"the log tells apart, so in mode 'upsert' rows with the same {', '.join(sink.key)}"
                f" would replace each other; leave the key out, or write mode = 'retract' or "
                f"'debezium'",
            )
        ]
    missing = [name for name in key_parts(view).values() if name not in sink.key]
    return [
        Problem(
            sink.location,
            f"sink {sink.name}: in mode 'upsert' rows with the same key replace each other, and "
            f"the key {', '.join(sink.key)} lacks {name}, by which {view.name} groups{advice}",
        )
        for name in missing[:1]
    ]


def _key_problems(sink: Sink, view: View) -> list[Problem]:
    if sink.key:
        return _own_key_problems(sink, view)
    aggregate = aggregate_of(view.query)
    if aggregate is None:
        return []
    parts = key_parts(view)
    names = list(parts.values())
    start, end, _ = WINDOW_COLUMNS
    whats = {start: "window's start", end: "window's end"}
    for number, key in enumerate(aggregate.keys):
        whats[key_column(number)] = f"grouping {key.render(str)}"
    unselected = parts.keys() - set(passed_on(view.query).values())
    return [
        Problem(
            sink.location,
            f"sink {sink.name}: the key of its records would have two parts called {name}, an "
            f"output of {view.name} and its {whats[part]}, which is not selected; select it too, "
            f"or rename the output",
        )
        for part, name in parts.items()
        if part in unselected and names.count(name) > 1
    ]


def _feeds(project: Project, topic: str, stream: str) -> bool:
    """Whether what is written to a topic reaches a stream, through views and sinks."""
    reached: set[str] = set()
    waiting = [topic]
    while waiting:
        here = waiting.pop()
        if here in reached:
            continue
        reached.add(here)
        for each in project.streams:
            if each.topic == here:
                views = {view.name for view in project.views_over(each.name)}
                waiting += [sink.topic for sink in project.sinks if sink.view in views]
    return any(each.name == stream and each.topic in reached for each in project.streams)
