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
   from the keys alone fails, or a function call within one that does: they are asked of the
   record, as the keys are.
5. Otherwise it is folded: into the group of its keys and each window that it is not late for, or as
   a row of its own. That is a correction where `t <= w`. In a view of sessions it is folded into
   the session of its keys that it is in: a longest chain of such records, in the order of their
   times, each at most the gap after the one before it; `[s, t)` of the row is from the first of
   them to the gap after the last.

A generator, or a window function of FROM, makes several rows of a record, and what follows is of
these rows: they are skipped, matched and folded. The record stays one whole: if an expression fails
on one of its rows, also in another branch of a union, the record is dead for the view, and none of
its rows counts. A union's rows are those of its branches.

A group exists once a record is folded into it: a view without keys has no row over an empty log.
HAVING is asked of it, then the outputs where that is true. If one fails, the group is no row of the
view: its key is among the view's errors.
The counters seen, skipped, dead and matched count records, once for each leaf that reads them;
pairs, folded, late and corrected count pairs of record and window. With generators, `records`
counts the records: some are `left_out` by a condition before the first generator, some are `dead`,
some are `empty`, since the first generator makes no row of them, and the others are `expanded`. The
rows of the last generator are `seen`: some are `skipped` by conditions behind it, the others
`matched`, and pairs are of row and window. `ended` are rows of one generator that the next makes
none of. The late and dead sets hold each record once.
A windowed row leaves when `t + retention <= W`; a view that drops its late records has no late set.
A windowed row is closed when `t <= W`, the smallest watermark of the stream's partitions after
their last records; a row of a view without grouping is closed from the start, since nothing can
change it; an unwindowed group never closes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.log.base import Partition
from headrace.model.definitions import Project
from headrace.model.graph import streams_of
from headrace.model.nodes import (
    Aggregate,
    AssignWindows,
    Changelog,
    Deduplicate,
    Filter,
    Generate,
    Node,
    Scan,
    Union,
    key_column,
)
from headrace.model.nodes import Project as ProjectNode
from headrace.model.scalars import Scalar
from headrace.model.sinks import key_parts
from headrace.reference.clocks import read_markers
from headrace.reference.groups import fold
from headrace.reference.linear import (
    assign_windows,
    deduplicate,
    filter_rows,
    generate,
    project,
    scan,
    unite,
)
from headrace.reference.placing import edges_of
from headrace.reference.relations import (
    Coordinates,
    Counts,
    Dead,
    Folding,
    Question,
    Relation,
    Row,
    ask,
)
from headrace.reference.scalars import Scalars
from headrace.reference.streams import Readable, Record, StreamRead, read_stream, split_duplicates
from headrace.schema.codec import Operation
from headrace.schema.formats import counted_operations

__all__ = ["Answer", "Record", "answer"]

_CHANGES = {
    Operation.UPSERT: "upserts",
    Operation.DELETE: "deletes",
    Operation.TRUNCATE: "truncates",
    Operation.IGNORE: "ignored",
}


@dataclass
class Answer:
    """All that promise 1 speaks of. Streams and views share their names, so they share dicts.

    `rows` hold a view's outputs, `_events` (records folded into the row) and `_closed`. `errors`
    hold the keys of groups on which an expression fails, under the names that sinks know them by.
    """

    rows: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    errors: dict[str, list[dict[str, object]]] = field(default_factory=dict)
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
    """
    result = Answer()
    valid = read_markers(markers)
    read = {each.name: read_stream(each, records, valid) for each in definitions.streams}
    for stream in read.values():
        _answer_stream(result, stream)
    scalars = Scalars()
    for view in definitions.views:
        watermark = min(read[name].watermark for name in streams_of(view.query))
        _answer_view(result, Question(view, read, watermark, scalars, Dead()))
    return result


def _answer_stream(result: Answer, read: StreamRead) -> None:
    stream, accepted = read.stream, read.readable
    duplicates: list[Readable] = []
    if stream.unique is not None:
        accepted, duplicates = split_duplicates(accepted, stream.unique, stream.unique_within_us)
    result.dead[stream.name] = [*sorted(read.dead)]
    result.duplicates[stream.name] = [*sorted(record.place for record in duplicates)]
    records = [each for each in read.readable if not each.is_second]
    unguarded = sum(each.record.arrival_us is None for each in records)
    result.counters[stream.name] = {
        "read": len(read.readable) + len(read.dead),
        "accepted": sum(not each.is_second for each in accepted),
        "dead": len(read.dead),
        "duplicate": len(duplicates),
        "unguarded": 0 if stream.event_time is None else unguarded,
    }
    counted = counted_operations(stream.encoding)
    if counted:
        done = read.operations
        result.counters[stream.name] |= {_CHANGES[each]: done[each] for each in counted}
        result.counters[stream.name]["read"] = done.total() + len(read.dead)


def evaluate(node: Node, question: Question) -> Relation:
    """Return what a node gives."""
    match node:
        case Scan() | Changelog():
            return scan(node, question)
        case Deduplicate():
            return deduplicate(node, question)
        case ProjectNode():
            return project(node, evaluate(node.input, question))
        case Filter():
            return filter_rows(node, evaluate(node.input, question), question)
        case Union():
            return unite([evaluate(each, question) for each in node.inputs], question)
        case Generate():
            return generate(node, evaluate(node.input, question), question)
        case AssignWindows():
            return assign_windows(node, evaluate(node.input, question), question)
        case Aggregate():
            return fold(node, evaluate(node.input, question), question)


def _answer_view(result: Answer, question: Question) -> None:
    view, dead = question.view, question.dead
    while True:
        known = len(dead.found)
        dead.begin()
        question.errors.clear()  # some may be of records that turned out to be dead
        rows, relation = _work_out(question)
        if len(dead.found) == known:
            break
    folding = relation.folding or Folding(len(rows), len(rows), len(rows), 0, 0, ())
    result.rows[view.name] = rows
    result.errors[view.name] = [
        _key(question, row) for row in question.errors if not _left(question, row)
    ]
    result.late[view.name] = [] if view.late == "drop" else sorted(folding.late_records)
    if view.kind == "table":
        return  # counters and dead records belong to the stream of its changes
    result.dead[view.name] = dead.records
    result.counters[view.name] = _count(relation.counts, folding.matched) | {
        "pairs": folding.pairs,
        "folded": folding.folded,
        "late": folding.late,
        "corrected": folding.corrected,
    }


def _work_out(question: Question) -> tuple[list[dict[str, object]], Relation]:
    """Return a view's rows, and what became of all others; `question.dead` may have grown."""
    relation = evaluate(question.view.query, question)
    rows: list[dict[str, object]] = []
    for part in relation.parts:
        # The columns are over the part's own table already.
        outputs = {name: Scalar.column(name) for name in part.columns}
        sound, columns = ask(question, relation, part, list(outputs.values()))
        for at, row in enumerate(sound.rows):
            if _left(question, row):
                continue
            values = (column.values[at] for column in columns)
            found = dict(zip(outputs, values, strict=True))
            closed = row.end_us <= question.watermark
            rows.append(found | {"_events": row.events, "_closed": closed})
    return rows, relation


def _left(question: Question, row: Row) -> bool:
    """Whether retention has ended for a row."""
    retention_us = question.view.retention_us
    return retention_us is not None and row.end_us + retention_us <= question.watermark


def _key(question: Question, row: Row) -> dict[str, object]:
    """Return the key of a group as sinks name it."""
    window, *keys = row.coordinates
    values: dict[str, object] = {key_column(at): value for at, value in enumerate(keys)}
    values |= edges_of(window) if window is not None else {}
    return {name: values[column] for column, name in key_parts(question.view).items()}


def _count(counts: Sequence[Counts], matched: int) -> dict[str, int]:
    """Return the counters up to `matched`: those of all leaves together."""
    total: Counter[str] = Counter({"seen": 0, "skipped": 0, "dead": 0})
    for each in counts:
        if each.made is None:  # a record is a row
            total.update(seen=each.records + each.dead, skipped=each.left_out, dead=each.dead)
            continue
        total.update(
            records=each.records + each.dead,
            left_out=each.left_out,
            dead=each.dead,
            empty=each.empty,
            expanded=each.records - each.left_out - each.empty,
            ended=each.ended,
            seen=each.made,
            skipped=each.skipped,
        )
    return {**total, "matched": matched}
