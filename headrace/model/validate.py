"""What holds for every definition, whichever front door it came through.

Promises:
- Every problem is returned, not only the first; none means that the definition may be acted on.
- A problem stands where `locations` says its subject stands, else where the definition begins.
Not checked here: whether the expressions are sound, which only their own language can say.
"""

import re
from collections.abc import Mapping

from headrace.errors import Location, Problem
from headrace.model import nodes
from headrace.model.definitions import Computed, NamedQuery, Project, Sink, Stream, View
from headrace.model.graph import aggregate_of, streams_of, walk, window_of
from headrace.model.names import closest, name_fault, topic_fault
from headrace.model.references import unknown_columns
from headrace.model.scalars import columns_of
from headrace.model.sinks import sink_problems
from headrace.model.traits import traits_of
from headrace.model.windows import window_faults
from headrace.schema.types import TIMESTAMP_FORMATS as COLUMN_FORMATS
from headrace.schema.types import Column

__all__ = [
    "FORMATS",
    "TIMESTAMP_FORMATS",
    "taken_fault",
    "validate_project",
    "validate_stream",
    "validate_view",
]

FORMATS = ("json",)
TIMESTAMP_FORMATS = ("seconds", "millis", "micros")  # of a stream; ISO 8601 is not said
EMITS = ("changes", "every", "final")
LATE_POLICIES = ("topic", "drop", "fold")
DUPLICATES = ("drop", "topic")

#: Functions of Spark that keep what they collected of a record that they failed on.
_CALLED = re.compile(
    r"(?<!\w)(map|map_concat|map_from_arrays|map_from_entries|str_to_map|transform_keys)\(",
    re.IGNORECASE,
)

#: Subject to location: `name`, `topic`, `column 0`, `output 0`, `watermark` or an option's name.
Locations = Mapping[str, Location]


class _Findings:
    def __init__(self, location: Location, locations: Locations | None) -> None:
        self.location = location
        self.locations = locations or {}
        self.problems: list[Problem] = []

    def add(self, subject: str, message: str | None) -> None:
        if message is not None:
            self.problems.append(Problem(self.locations.get(subject, self.location), message))

    def add_names(self, kind: str, names: list[str]) -> None:
        seen: set[str] = set()
        for index, name in enumerate(names):
            self.add(f"{kind} {index}", name_fault(kind, name))
            if name.lower() in seen:
                self.add(
                    f"{kind} {index}",
                    f"{kind} {name} occurs twice (names are not case-sensitive); rename one",
                )
            seen.add(name.lower())


def validate_stream(stream: Stream, locations: Locations | None = None) -> list[Problem]:
    """Return every problem of one stream."""
    findings = _Findings(stream.location, locations)
    fault = name_fault("stream", stream.name)
    findings.add("name", fault)
    if fault is None or stream.topic != stream.name:  # else it is the name's own
        findings.add("topic", topic_fault(stream.topic))
    if not stream.columns:
        findings.add("name", f"stream {stream.name} has no columns; write at least one")
    findings.add_names(
        "column",
        [column.name for column in stream.columns] + [each.name for each in stream.computed],
    )
    for index, column in enumerate(stream.columns):
        findings.add(f"column {index}", _format_fault(column))
    for index, computed in enumerate(stream.computed, len(stream.columns)):
        findings.add(f"column {index}", _computed_fault(stream, computed))
    names = [name for name, _ in stream.outline]
    if stream.format not in FORMATS:
        findings.add("format", f"format {stream.format!r} is not built yet; write format = 'json'")
    if stream.timestamp_format is not None and stream.timestamp_format not in TIMESTAMP_FORMATS:
        findings.add(
            "timestamp_format",
            f"timestamp_format {stream.timestamp_format!r} is not known; write 'seconds', 'millis' "
            "or 'micros' (since 1970), or leave it out for ISO 8601",
        )
    if stream.key is not None and stream.key not in names:
        findings.add(
            "key",
            f"key {stream.key!r} is not a column of {stream.name}{closest(stream.key, names)}",
        )
    if stream.event_time is not None:
        findings.add("watermark", _event_time_fault(stream, stream.event_time))
    if stream.idle_timeout_us <= 0:
        findings.add(
            "idle_timeout",
            "idle_timeout must be positive: otherwise every pause would count as idle; write "
            "'1 minute'",
        )
    if stream.delay_us < 0:
        findings.add("watermark", "the watermark's delay is negative; write 0 or more")
    _check_unique(findings, stream)
    return findings.problems


def _computed_fault(stream: Stream, computed: Computed) -> str | None:
    """Return what is wrong with a computed column, if records are read with it."""
    if computed not in stream.eager:
        return None
    name = computed.name
    role, example = "the unique id", "STRING"
    if name == stream.event_time:
        role, example = "the event time", "TIMESTAMP"
    if computed.type is None:
        return f"column {name}: {role} has a type; write {name} {example} AS ..."
    declared = {column.name for column in stream.columns}
    others = [ref for ref in computed.scalar.refs if ref not in declared]
    if others:
        return (
            f"column {name}: {role} is computed from the columns of the record's value, and "
            f"{others[0]} is none of them"
        )
    built = next(iter(_CALLED.findall(computed.scalar.text)), None)
    if built is not None:
        return (
            f"column {name}: {built}() makes a map, which {role} cannot be computed from: Spark "
            "takes keys of a record that fails for those of the next. Read the value with "
            f"{name} {example} FROM '$.path.to.it', or compute it with get_json_object"
        )
    return None


def _format_fault(column: Column) -> str | None:
    if column.format is None:
        return None
    name = column.name
    if not column.type.holds_timestamp:
        return (
            f"column {name}: FORMAT says how timestamps are written, and {column.type.sql} has "
            f"none; remove it, or write {name} TIMESTAMP FORMAT '{column.format}'"
        )
    if column.format not in COLUMN_FORMATS:
        return (
            f"column {name}: FORMAT {column.format!r} is not known; write 'iso8601', 'seconds', "
            "'millis' or 'micros' (since 1970). For other texts read a STRING, and compute the "
            f"time from it: {name} TIMESTAMP AS to_timestamp(<column>, 'yyyy-MM-dd HH:mm:ss')"
        )
    return None


def _check_unique(findings: _Findings, stream: Stream) -> None:
    if stream.duplicates not in DUPLICATES:
        findings.add(
            "duplicates",
            f"duplicates = {stream.duplicates!r} is not known; write 'drop', which counts them, or "
            f"'topic', which also keeps them in {stream.name}.duplicate",
        )
    if stream.unique is None:
        for option, is_set in (
            ("unique_within", stream.unique_within_us != 0),
            ("duplicates", stream.duplicates != Stream.duplicates),
        ):
            if is_set:
                findings.add(
                    option,
                    f"{option} of {stream.name} has no effect without a unique id; write "
                    "unique = '<column>' as well, or remove it",
                )
        return
    findings.add("unique", _unique_fault(stream, stream.unique))
    if stream.event_time is None:
        findings.add(
            "unique",
            f"unique needs the event time of {stream.name}, whose clock measures how long ids are "
            "remembered; add to its columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 "
            "SECONDS",
        )
    if stream.unique_within_us <= 0:
        findings.add(
            "unique_within" if "unique_within" in findings.locations else "unique",
            f"unique = '{stream.unique}' needs a horizon, since ids are not remembered for ever; "
            "write unique_within = '1 hour'",
        )


def _unique_fault(stream: Stream, name: str) -> str | None:
    if _is_untyped(stream, name):
        return None
    column = next((column for column in stream.scanned if column.name == name), None)
    if column is None:
        known = [name for name, _ in stream.outline]
        return f"unique {name!r} is not a column of {stream.name}{closest(name, known)}"
    if column.type.kind in ("FLOAT", "DOUBLE", "ARRAY", "MAP", "STRUCT"):
        return (
            f"unique {name!r}: values of {column.type.sql} cannot be compared exactly; write "
            f"{name} STRING NOT NULL, which takes any value as its text"
        )
    if column.nullable:
        return (
            f"unique {name!r}: records without an id cannot be told apart; "
            f"write {name} {column.type.sql} NOT NULL"
        )
    return None


def _is_untyped(stream: Stream, name: str) -> bool:
    """Whether a column is a computed one without a type, which is said of the column itself."""
    return any(each.name == name and each.type is None for each in stream.eager)


def _event_time_fault(stream: Stream, name: str) -> str | None:
    if name == nodes.ARRIVAL or _is_untyped(stream, name):
        return None
    column = next((column for column in stream.scanned if column.name == name), None)
    if column is None:
        known = [name for name, _ in stream.outline]
        return f"WATERMARK FOR {name}: {stream.name} has no such column{closest(name, known)}"
    if column.type.kind != "TIMESTAMP":
        return (
            f"WATERMARK FOR {name}: the event time must be a TIMESTAMP, not {column.type.sql}; "
            f"write {name} TIMESTAMP {'NOT NULL' if column in stream.columns else 'AS ...'}"
        )
    if column.nullable:
        return (
            f"WATERMARK FOR {name}: a record without an event time has no place in time; "
            f"write {name} TIMESTAMP NOT NULL"
        )
    return None


def validate_view(
    view: View, streams: Mapping[str, Stream], locations: Locations | None = None
) -> list[Problem]:
    """Return every problem of one view; `streams` has those that it reads, by name."""
    findings = _Findings(view.location, locations)
    findings.add("name", name_fault("view", view.name))
    outputs = traits_of(view.query, streams).columns
    if not outputs:
        findings.add("name", f"view {view.name} has no outputs; select at least one")
    findings.add_names("output", list(outputs))
    for fault in unknown_columns(view.query, streams):
        findings.add("name", f"view {view.name}: {fault}")
    for node in walk(view.query):
        if isinstance(node, nodes.Aggregate) and node.window is not None:
            _add_window_faults(findings, node, node.window, streams)
        elif isinstance(node, nodes.AssignWindows):
            _add_time_faults(findings, node, node.window, streams)
            if node.window.gap_us is not None:
                findings.add(
                    "window",
                    "a session is known only when it is complete, so a record has no session of "
                    "its own; group by it",
                )
        elif isinstance(node, nodes.Union):
            widths = [len(traits_of(each, streams).columns) for each in node.inputs]
            if len(set(widths)) > 1:
                found = ", ".join(map(str, widths))
                findings.add(
                    "name", f"the queries of UNION ALL have {found} columns; select as many in each"
                )
    if window_of(view.query) is None:
        _add_unwindowed_faults(findings, view)
    _add_lateness_faults(findings, view)
    _add_emit_faults(findings, view)
    return findings.problems


def _add_window_faults(
    findings: _Findings,
    aggregate: nodes.Aggregate,
    window: nodes.Window,
    streams: Mapping[str, Stream],
) -> None:
    _add_time_faults(findings, aggregate, window, streams)
    reads_window = not columns_of(aggregate.keys).isdisjoint(nodes.WINDOW_COLUMNS)
    # Below it a window function of FROM may have made columns of these names.
    reads_window = reads_window and not any(
        isinstance(each, nodes.AssignWindows) for each in walk(aggregate.input)
    )
    if reads_window and (window.overlaps or window.gap_us is not None):
        which = "windows that overlap" if window.overlaps else "sessions"
        findings.add(
            "window",
            f"{which} have a start and an end, and no other expressions are supported: select "
            "window.start, and compute the rest when you read the view",
        )
    if any(name.lower() == "window" for name in traits_of(aggregate.input, streams).columns):
        findings.add(
            "window",
            f"{streams_of(aggregate)[0]} has a column named window, which hides window.start; "
            "rename it",
        )


def _add_time_faults(
    findings: _Findings,
    node: nodes.Aggregate | nodes.AssignWindows,
    window: nodes.Window,
    streams: Mapping[str, Stream],
) -> None:
    below = traits_of(node.input, streams)
    read = streams_of(node)
    if below.event_time is None:
        timeless = [name for name in read if streams[name].event_time is None]
        findings.add(
            "window",
            f"window() needs the event time of {timeless[0]}, which has none; add to its "
            "columns: WATERMARK FOR <column> AS <column> - INTERVAL 0 SECONDS"
            if timeless
            else f"window() needs the event time of {', '.join(read)}, which the query below "
            f"does not select; select {streams[read[0]].event_time} as it is",
        )
    elif window.time is not None and window.time.refs != (below.event_time,):
        findings.add(
            "window",
            f"windows are over the event time of {', '.join(read)}, which is {below.event_time}",
        )
    for subject, fault in window_faults(window):
        findings.add(subject, fault)


def _add_emit_faults(findings: _Findings, view: View) -> None:
    if view.emit not in EMITS:
        findings.add(
            "emit",
            f"emit {view.emit!r} is not known{closest(view.emit, EMITS)}; write 'changes', "
            "'every 10 seconds' or 'final'",
        )
    elif view.emit == "every" and view.emit_every_us <= 0:
        findings.add("emit", "`emit = 'every 0 seconds'` is not allowed; use `emit = 'changes'`")
    elif view.emit == "final" and _never_closes(view):
        findings.add(
            "emit",
            f"emit of {view.name}: without a window no row is ever final; write 'changes', or "
            "group by window(...)",
        )


def _never_closes(view: View) -> bool:
    aggregate = aggregate_of(view.query)
    return aggregate is not None and aggregate.window is None


def _add_unwindowed_faults(findings: _Findings, view: View) -> None:
    if view.allowed_lateness_us:
        findings.add(
            "allowed_lateness",
            f"allowed_lateness of {view.name}: without a window no record is ever late; remove "
            "it, or group by window(...)",
        )
    if view.late != "topic":
        findings.add(
            "late",
            f"late of {view.name}: without a window no record is ever late; remove it, or group "
            "by window(...)",
        )
    if view.retention_us is not None:
        findings.add(
            "retention",
            f"retention of {view.name}: without a window its rows have no time to be counted "
            "from; remove it, or group by window(...)",
        )


def _add_session_faults(findings: _Findings, view: View, gap_us: int) -> None:
    """Refuse that a row leaves while a record that takes part can still extend it.

    Such a record has `e + gap + lateness > w >= W`, and reaches rows whose last one is at or after
    `e - gap`. So it reaches none that has left, `last + gap + retention <= W`, if retention is at
    least the lateness and the gap.
    """
    if view.retention_us is None:
        return
    if view.late == "fold" and view.retention_us < gap_us:
        findings.add(
            "retention",
            "retention is shorter than the session's gap: a session would be removed while a "
            "record in time can still extend it; write a retention of at least the gap",
        )
    elif view.late != "fold" and view.retention_us < max(view.allowed_lateness_us, 0) + gap_us:
        findings.add(
            "retention",
            "retention is shorter than allowed_lateness and the session's gap together: a "
            "session would be removed while a record in time can still extend it; write a "
            "retention of at least their sum",
        )


def _add_lateness_faults(findings: _Findings, view: View) -> None:
    window = window_of(view.query)
    gap_us = None if window is None else window.gap_us
    if view.late not in LATE_POLICIES:
        findings.add(
            "late",
            f"late {view.late!r} is not known; write 'topic' (late records go to the topic "
            f"{view.name}.late), 'drop' (they are only counted) or 'fold' (no record is late "
            "while its row is kept)",
        )
    if view.allowed_lateness_us < 0:
        findings.add("allowed_lateness", "allowed_lateness is negative; write 0 or more")
    if view.late == "fold" and view.allowed_lateness_us > 0:
        findings.add(
            "allowed_lateness",
            "late = 'fold' takes every record for as long as its row is kept, so allowed_lateness "
            "has no effect; remove one of the two",
        )
    elif gap_us is not None:
        _add_session_faults(findings, view, gap_us)
    elif view.retention_us is not None and view.retention_us < max(view.allowed_lateness_us, 0):
        findings.add(
            "retention",
            "retention is shorter than allowed_lateness: a row would be removed and come back "
            "with a part of its records; write a longer retention or a shorter allowed_lateness",
        )


def taken_fault(name: str, first: Location) -> str:
    """Return what is wrong with a name that another definition has."""
    return (
        f"{name} is defined at {first} already (streams, views and sinks share their names, "
        "which are not case-sensitive); rename one"
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
    definitions: list[Stream | View | Sink | NamedQuery] = [
        *project.streams,
        *project.queries,
        *project.views,
        *project.sinks,
    ]
    for definition in definitions:
        first = taken.setdefault(definition.name.lower(), definition)
        if first is not definition:
            problems.append(
                Problem(definition.location, taken_fault(definition.name, first.location))
            )
    writing = [each for each in definitions if not isinstance(each, NamedQuery)]
    side_topics = {f"{definition.name}.dead" for definition in writing}
    side_topics |= {f"{view.name}.late" for view in project.views}
    side_topics |= {
        f"{stream.name}.duplicate" for stream in project.streams if stream.duplicates == "topic"
    }
    problems += [
        Problem(
            stream.location,
            f"stream {stream.name} reads {stream.topic}, a side topic of this project: "
            "the records that are put aside there would come back; read it from another project",
        )
        for stream in project.streams
        if stream.topic in side_topics
    ]
    known = {stream.name for stream in project.streams}
    problems += [
        Problem(
            view.location,
            f"view {view.name} reads {name}, which is not a stream of the "
            f"project{closest(name, known)}",
        )
        for view in project.views
        for name in streams_of(view.query)
        if name not in known
    ]
    return problems + sink_problems(project, side_topics, whole=whole, refused=refused)
