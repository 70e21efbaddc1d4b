"""Topics that the engine writes: producers do not append to them.

What a view, a sink or a stream puts there is compared by audits and read as the engine's word.
"""

from headrace.errors import UsageError
from headrace.log.names import refuse_closed
from headrace.model.definitions import Project

__all__ = ["refuse_written", "written_topics"]


def written_topics(project: Project) -> dict[str, str]:
    """Return the topics that the project's engine writes, and who writes each."""
    found: dict[str, str] = {}
    for stream in project.streams:
        found[f"{stream.name}.dead"] = f"stream {stream.name}"
        if stream.duplicates == "topic":
            found[f"{stream.name}.duplicate"] = f"stream {stream.name}"
    for view in project.views:
        found[f"{view.name}.dead"] = f"{view.kind} {view.name}"
        if view.topic is None:
            found[f"{view.name}.late"] = f"view {view.name}"
        else:
            found[view.topic] = f"stream {view.name}"
    for sink in project.sinks:
        found[f"{sink.name}.dead"] = found[sink.topic] = f"sink {sink.name}"
    return found


def refuse_written(project: Project, topic: str) -> None:
    """Refuse to append to a topic that the engine writes. UsageError."""
    refuse_closed(topic)
    if (writer := written_topics(project).get(topic)) is not None:
        raise UsageError(
            f"{topic!r}: the engine alone writes there, for {writer}. Append to another topic; "
            f"reading it is free."
        )
