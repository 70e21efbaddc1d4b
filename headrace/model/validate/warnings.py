"""What is worth a second look in definitions that are sound: warnings, and notes.

A warning says that an answer may surprise; a note says that a definition has no effect.
"""

from headrace.errors import Problem
from headrace.model.definitions import NamedQuery, Project, Stream
from headrace.model.graph import named_readers_of, writers_of

__all__ = ["unread_notes", "written_topic_warnings"]


def written_topic_warnings(project: Project) -> list[Problem]:
    """Return a warning for each stream that reads a topic which the project itself writes."""
    return [
        Problem(
            stream.location,
            f"stream {stream.name} reads the topic {stream.topic}, which sink {sink.name} of this "
            f"project writes: it reads the changes of {sink.view} as records, each with the delay "
            f"of the sink, and not the rows of {sink.view}. Read the streams that {sink.view} "
            f"reads, or leave it so if you want the changes",
        )
        for stream in project.streams
        if not stream.primary_key  # a table has the rows of the view again
        for sink in writers_of(project, stream.topic)
    ]


def unread_notes(project: Project) -> list[Problem]:
    """Return a note for each stream and named query that no definition reads."""
    streams = [stream for stream in project.streams if not stream.primary_key]
    readable: list[Stream | NamedQuery] = [*streams, *project.queries]
    return [
        Problem(
            each.location,
            f"no definition reads {each.name}: write a query over it, or remove it",
        )
        for each in readable
        if not named_readers_of(project, each.name)
    ]
