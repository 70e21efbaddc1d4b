"""What holds between definitions: names and topics that collide."""

from headrace.errors import Location, Problem
from headrace.model.definitions import NamedQuery, Project, Sink, Stream, View
from headrace.model.graph import streams_of
from headrace.model.names import closest
from headrace.model.validate.sinks import sink_problems
from headrace.model.validate.writing import writing_problems

__all__ = ["taken_fault", "validate_project"]


def taken_fault(name: str, first: Location) -> str:
    """Return what is wrong with a name that another definition has."""
    return (
        f"{name} is defined at {first} already (streams, tables, views and sinks share their "
        "names, which are not case-sensitive); rename one"
    )


def validate_project(
    project: Project, *, whole: bool = True, refused: frozenset[str] = frozenset()
) -> list[Problem]:
    """Return the problems that lie between definitions: names and topics that collide.

    `whole` is false when some views could not be read, so that sinks of them prove nothing;
    `refused` are the names of other definitions that could not be, in lower case.
    """
    problems: list[Problem] = []
    taken: dict[str, Stream | View | Sink | NamedQuery] = {}
    # What writes a stream bears the name of the query that others read.
    named = {query.name for query in project.queries if query.topic is not None}
    definitions: list[Stream | View | Sink | NamedQuery] = [
        *project.streams,
        *project.queries,
        # A table bears the name of the stream of its changes.
        *(
            view
            for view in project.views
            if view.kind == "view" or (view.kind == "stream" and view.name not in named)
        ),
        *project.sinks,
    ]
    for definition in definitions:
        first = taken.setdefault(definition.name.lower(), definition)
        if first is not definition:
            problems.append(
                Problem(definition.location, taken_fault(definition.name, first.location))
            )
    aside: list[Stream | View | Sink] = [*project.streams, *project.views, *project.sinks]
    side_topics = {f"{definition.name}.dead" for definition in aside}
    side_topics |= {f"{view.name}.late" for view in project.views if view.topic is None}
    side_topics |= {
        f"{stream.name}.duplicate" for stream in project.streams if stream.duplicates == "topic"
    }
    problems += [
        Problem(
            stream.location,
            f"{stream.kind} {stream.name} reads {stream.topic}, a side topic of this project: "
            "the records that are put aside there would come back; read it from another project",
        )
        for stream in project.streams
        if stream.topic in side_topics
    ]
    known = {stream.name for stream in project.streams}
    problems += [
        Problem(
            view.location,
            f"{view.kind} {view.name} reads {name}, which is not a stream of the "
            f"project{closest(name, known)}",
        )
        for view in project.views
        for name in streams_of(view.query)
        if name not in known
    ]
    problems += writing_problems(project, side_topics)
    return problems + sink_problems(project, side_topics, whole=whole, refused=refused)
