"""The answer: what a project's tables, sets and counters are, given the log. The definition.

Slow and obvious on purpose: no turns, no state, no merging; every record is looked at once, in
the order of its partition, and then each view is worked out, node by node, from all of them.

Every node has a function (`linear.py`, `groups.py`) that takes what its inputs give. A record of a
stream goes through them in this order:
1. It is *dead* for the stream when its value cannot be read as the schema says. Otherwise it is
   accepted, and its clock `c` is the largest `min(event time, arrival)` of the accepted records
   before it in its partition, and of the markers that act on it; with neither: minus infinity. An
   arrival that the log did not stamp counts as infinite. Its watermark `w` is the largest
   `c - delay` so far, with the delay that held then (`reference/clocks.py`). Where the stream has
   a unique id it may be a *duplicate* instead (`reference/duplicates.py`): it moves the clock all
   the same, and no view sees it.
2. Every view over the stream sees it. It is *dead* for the view when WHERE fails on it, and
   skipped when WHERE is not true; of several conditions each is asked of what the ones before took.
3. In a view with windows it belongs to every `[s, t)` around its event time, or around the time
   that the view derives from it. It is *dead* for the view when that time fails, is null, or has a
   window that reaches outside of the years 1 to 9999. It is *late* for a window when
   `t + allowed_lateness <= w` (a view that folds late records allows its retention, or for ever);
   if it is so for all of them, nothing more is evaluated of it. In a view of sessions its window
   is `[e, e + gap)`, the session that it would be alone.
4. It is *dead* for the view when a key, an argument or (without grouping) an output fails on it; an
   argument is evaluated where its FILTER is true. So it is when an output or HAVING that follows
   from the keys alone fails: it is asked of the record, as the keys are.
5. Otherwise it is folded: into the group of its keys and each window that it is not late for, or as
   a row of its own. That is a correction where `t <= w`. In a view of sessions it is folded into
   the session of its keys that it is in: a longest chain of such records, in the order of their
   times, each at most the gap after the one before it; `[s, t)` of the row is from the first of
   them to the gap after the last.

A generator makes several rows of a record, and what follows is of these rows instead of records: a
view's counters begin with the rows of its last generator. A union's rows are those of its branches.

A group exists once a record is folded into it: a view without keys has no row over an empty log.
The counters seen, skipped, dead and matched count records; pairs, folded, late and corrected count
pairs of record and window. A windowed row leaves when `t + retention <= W`; a view that drops its
late records has no late set.
A windowed row is closed when `t <= W`, the smallest watermark of the stream's partitions after
their last records; a row of a view without grouping is closed from the start, since nothing can
change it; an unwindowed group never closes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.log.base import Partition
from headrace.model.definitions import Project
from headrace.model.graph import streams_of
from headrace.model.nodes import (
    Aggregate,
    AssignWindows,
    Deduplicate,
    Filter,
    Generate,
    Node,
    Scan,
    Union,
)
from headrace.model.nodes import Project as ProjectNode
from headrace.model.scalars import Scalar
from headrace.reference.clocks import read_markers
from headrace.reference.groups import fold
from headrace.reference.linear import (
    deduplicate,
    filter_rows,
    generate,
    project,
    scan,
    unite,
)
from headrace.reference.relations import Coordinates, Folding, Question, Relation, ask
from headrace.reference.scalars import Scalars
from headrace.reference.streams import Readable, Record, StreamRead, read_stream, split_duplicates

__all__ = ["Answer", "Record", "answer"]


@dataclass
class Answer:
    """All that promise 1 speaks of. Streams and views share their names, so they share dicts.

    `rows` hold a view's outputs, `_events` (records folded into the row) and `_closed`.
    """

    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    late: dict[str, list[Coordinates]] = field(default_factory=dict)
    dead: dict[str, list[Coordinates]] = field(default_factory=dict)
    duplicates: dict[str, list[Coordinates]] = field(default_factory=dict)  # of streams
    counters: dict[str, dict[str, int]] = field(default_factory=dict)


def answer(
    definitions: Project,
    records: Mapping[Partition, Sequence[Record]],
    markers: Sequence[bytes | None] = (),
) -> Answer:
    """Return the answer over a log: every partition, also an empty one, with all its records.

    `markers` are the values in the topic of markers, in order.
    ValueError: an expression over aggregates fails, as reading the view would.
    """
    result = Answer()
    valid = read_markers(markers)
    read = {each.name: read_stream(each, records, valid) for each in definitions.streams}
    for stream in read.values():
        _answer_stream(result, stream)
    scalars = Scalars()
    for view in definitions.views:
        watermark = min(read[name].watermark for name in streams_of(view.query))
        _answer_view(result, Question(view, read, watermark, scalars))
    return result


def _answer_stream(result: Answer, read: StreamRead) -> None:
    stream, accepted = read.stream, read.readable
    duplicates: list[Readable] = []
    if stream.unique is not None:
        accepted, duplicates = split_duplicates(accepted, stream.unique, stream.unique_within_us)
    result.dead[stream.name] = [*sorted(read.dead)]
    result.duplicates[stream.name] = [*sorted(record.place for record in duplicates)]
    unguarded = sum(record.arrival_us is None for record in read.readable)
    result.counters[stream.name] = {
        "read": len(read.readable) + len(read.dead),
        "accepted": len(accepted),
        "dead": len(read.dead),
        "duplicate": len(duplicates),
        "unguarded": 0 if stream.event_time is None else unguarded,
    }


def evaluate(node: Node, question: Question) -> Relation:
    """Return what a node gives."""
    match node:
        case Scan():
            return scan(node, question)
        case Deduplicate():
            return deduplicate(node, question)
        case ProjectNode():
            return project(node, evaluate(node.input, question))
        case Filter():
            return filter_rows(node, evaluate(node.input, question), question)
        case Union():
            return unite([evaluate(each, question) for each in node.inputs])
        case Generate():
            return generate(node, evaluate(node.input, question), question)
        case AssignWindows():
            raise NotImplementedError("the reference does not know window functions in FROM")
        case Aggregate():
            return fold(node, evaluate(node.input, question), question)


def _answer_view(result: Answer, question: Question) -> None:
    view = question.view
    relation = evaluate(view.query, question)
    rows: list[dict[str, object]] = []
    dead = list(relation.dead)
    for part in relation.parts:
        # The columns are over the part's own table already.
        outputs = {name: Scalar.column(name) for name in part.columns}
        sound, columns, failed = ask(question, relation, part, list(outputs.values()))
        dead += failed
        for at, row in enumerate(sound.rows):
            if (
                view.retention_us is not None
                and row.end_us + view.retention_us <= question.watermark
            ):
                continue
            values = (column.values[at] for column in columns)
            found = dict(zip(outputs, values, strict=True))
            closed = row.end_us <= question.watermark
            rows.append(found | {"_events": row.events, "_closed": closed})
    folding = relation.folding or Folding(len(rows), len(rows), len(rows), 0, 0, ())
    result.rows[view.name] = rows
    result.late[view.name] = [] if view.late == "drop" else sorted(folding.late_rows)
    result.dead[view.name] = sorted([*relation.dead_before, *dead])
    result.counters[view.name] = {
        "seen": relation.seen,
        "skipped": relation.skipped,
        "dead": len(dead),
        "matched": folding.matched,
        "pairs": folding.pairs,
        "folded": folding.folded,
        "late": folding.late,
        "corrected": folding.corrected,
    }
