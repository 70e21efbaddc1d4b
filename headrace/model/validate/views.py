"""What holds for every view: its outputs, window, lateness, retention and emission."""

from collections.abc import Mapping

from headrace.errors import Problem
from headrace.model import nodes
from headrace.model.definitions import Stream, View
from headrace.model.graph import aggregate_of, streams_of, walk, window_of
from headrace.model.names import closest, name_fault
from headrace.model.references import unknown_columns
from headrace.model.scalars import columns_of
from headrace.model.traits import traits_of
from headrace.model.validate.findings import Findings, Locations
from headrace.model.windows import window_faults

__all__ = ["EMITS", "LATE_POLICIES", "validate_view"]

EMITS = ("changes", "every", "final")
CHANGES = ("followed", "always")
LATE_POLICIES = ("topic", "drop", "fold")


def validate_view(
    view: View, streams: Mapping[str, Stream], locations: Locations | None = None
) -> list[Problem]:
    """Return every problem of one view; `streams` has those that it reads, by name."""
    findings = Findings(view.location, locations)
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
    _add_changes_faults(findings, view)
    return findings.problems


def _add_window_faults(
    findings: Findings,
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
    findings: Findings,
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


def _add_emit_faults(findings: Findings, view: View) -> None:
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


def _add_changes_faults(findings: Findings, view: View) -> None:
    if view.changes not in CHANGES:
        findings.add(
            "changes",
            f"changes {view.changes!r} is not known{closest(view.changes, CHANGES)}; write "
            "'followed' (kept while somebody reads them) or 'always'",
        )


def _never_closes(view: View) -> bool:
    aggregate = aggregate_of(view.query)
    return aggregate is not None and aggregate.window is None


def _add_unwindowed_faults(findings: Findings, view: View) -> None:
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


def _add_session_faults(findings: Findings, view: View, gap_us: int) -> None:
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


def _add_lateness_faults(findings: Findings, view: View) -> None:
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
