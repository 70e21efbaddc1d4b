"""What holds for every stream that is written to a topic: the topic, the key, and who reads it."""

from collections.abc import Mapping

from headrace.errors import Location, Problem
from headrace.model.definitions import Project, Sink, Stream, View
from headrace.model.graph import streams_of
from headrace.model.names import closest, topic_fault
from headrace.model.traits import traits_of

__all__ = ["validate_writing", "writing_problems"]


def validate_writing(
    view: View, streams: Mapping[str, Stream], locations: Mapping[str, Location]
) -> list[Problem]:
    """Return what is wrong with where a stream is written, besides its query.

    `locations` are as in `findings.py`.
    """
    assert view.topic is not None
    problems: list[Problem] = []
    fault = topic_fault(view.topic)
    if fault is not None:
        problems.append(Problem(locations.get("topic", view.location), fault))
    outputs = traits_of(view.query, streams).columns
    if view.key is not None and view.key not in outputs:
        message = f"key {view.key!r} is not a column of {view.name}{closest(view.key, outputs)}"
        problems.append(Problem(locations.get("key", view.location), message))
    return problems


def writing_problems(project: Project, side_topics: set[str]) -> list[Problem]:
    """Return what is wrong between streams that are written and everything else."""
    problems: list[Problem] = []
    written = {view: view.topic for view in project.views if view.topic is not None}
    taken: dict[str, View | Sink] = {sink.topic: sink for sink in reversed(project.sinks)}
    for each, topic in written.items():
        first = taken.setdefault(topic, each)
        what = f"stream {each.name} is written to {topic}"
        if first is not each:
            other = "sink" if isinstance(first, Sink) else "stream"
            message = (
                f"{what}, as {other} {first.name} at {first.location} is; their records could not "
                "be told apart, so give each its own topic"
            )
            problems.append(Problem(each.location, message))
        if topic in side_topics:
            message = f"{what}, where this project puts records aside; choose another topic"
            problems.append(Problem(each.location, message))
        problems += _reading_problems(project, each, topic)
    return problems


def _reading_problems(project: Project, view: View, topic: str) -> list[Problem]:
    """Return what is wrong with the streams that read what a stream is written to."""
    problems: list[Problem] = []
    for stream in project.streams:
        if stream.topic != topic:
            continue
        if stream.name in streams_of(view.query):
            message = (
                f"stream {view.name} is written to {topic}, which it reads as {stream.name}: its "
                "records would come back for ever; choose another topic"
            )
            problems.append(Problem(view.location, message))
        else:
            message = (
                f"{stream.kind} {stream.name} reads {topic}, which {view.name} at {view.location} "
                f"is written to: it would see the records later and with other watermarks; read "
                f"FROM {view.name}, which has the same rows, or read the topic from another project"
            )
            problems.append(Problem(stream.location, message))
    return problems
