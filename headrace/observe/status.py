"""What is going on, as one frozen value: taken from a snapshot of the store and the log's ends.

It needs no engine, so it says the same whether one is running or not. Everything but the log's
ends is of one commit; the ends are read after it, so a lag is never negative.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.ledger.definitions import stream_of, view_of
from headrace.ledger.entries import (
    Counters,
    Holding,
    Progress,
    StreamPartition,
    TurnReport,
    watermark_of_stream,
)
from headrace.ledger.laws import (
    CHANGE_COUNTERS,
    EXPANDED_COUNTERS,
    STREAM_COUNTERS,
    VIEW_COUNTERS,
    totals_of,
)
from headrace.log.base import Extent, Log, Partition
from headrace.model.graph import aggregate_of
from headrace.observe.drift import Drift
from headrace.observe.gone import TopicsRead
from headrace.observe.placing import placing_warnings
from headrace.project.settings import Settings
from headrace.store.base import Snapshot
from headrace.time.clocks import NEVER
from headrace.wording import counted as counted_noun

__all__ = [
    "EngineStatus",
    "OperatorStatus",
    "PartitionStatus",
    "Status",
    "StreamStatus",
    "UnitStatus",
    "ViewStatus",
    "take_status",
]


@dataclass(frozen=True)
class PartitionStatus:
    """How far a stream has read a partition; times are None before the first readable record."""

    partition: int
    position: int
    end_offset: int
    lag_records: int
    clock_us: int | None
    watermark_us: int | None
    delay_us: int
    idle: bool  # its clock was moved by a marker last, not by a record of its own


@dataclass(frozen=True)
class StreamStatus:
    """A version of a stream, or of the changes of a table."""

    name: str
    version: str
    topic: str
    state: str
    unit: str
    lag_records: int
    guarded: bool  # arrivals keep clocks that run ahead from closing windows
    watermark_us: int | None  # the smallest of its partitions: windows before it are closed
    counters: Counters
    partitions: tuple[PartitionStatus, ...]
    readers: tuple[str, ...] = ()  # the views that read it: it cannot be removed while there is one
    kind: str = "stream"  # or "table": the changes of one


@dataclass(frozen=True)
class ViewStatus:
    """A version of a view; `reason` says why it failed or goes on by itself.

    A stream that is written is one too: `topic` is where its rows go, and it has no state.
    """

    name: str
    version: str
    inputs: tuple[str, ...]
    state: str
    reason: str
    unit: str
    state_rows: int
    state_bytes_estimate: int  # before the store compresses them
    lag_records: int
    watermark_us: int | None
    counters: Counters
    #: Rows on which an expression fails; None: it has none, or its windows overlap, and to count
    #: them would be to put all windows together.
    error_rows: int | None = None
    readers: tuple[str, ...] = ()  # the sinks that are told of it
    topic: str | None = None
    kind: str = "view"  # or "table", or "stream", which is written
    #: Of a table: keys whose changes are in several partitions, so that their order is not known.
    scattered_keys: int | None = None


@dataclass(frozen=True)
class SinkStatus:
    """A sink and the version of its view that it is told of; none before the first.

    It has all changes up to the commit `told`; `rows` of later ones wait.
    """

    name: str
    view: str
    version: str
    topic: str
    mode: str
    told: int
    rows: int
    state: str = "live"  # or paused


@dataclass(frozen=True)
class ChangesStatus:
    """Changes of a view that are kept after the commit `since`, and for whom."""

    view: str
    since: int
    rows: int
    sinks: int
    readers: int  # with a lease
    always: bool
    held_bytes: int = 0  # in memory, of the last changes and of the rows they end with


@dataclass(frozen=True)
class OperatorStatus:
    """What a keyed step remembers for a unit: entries, and the files that hold them."""

    operator: str
    stream: str
    unit: str
    state_rows: int
    state_bytes: int
    runs: int


@dataclass(frozen=True)
class EngineStatus:
    """The engine that runs."""

    pid: int
    started: str
    watches: bool  # it applies edited definitions by itself
    version: str = ""  # of Headrace


@dataclass(frozen=True)
class UnitStatus:
    """A unit and its last turn; `last` is None before the first one.

    Its milliseconds are those of all steps; of publishing, which goes on beside the next turn, how
    long the turn waited for it. Of a turn after which the engine was killed, those of the commit
    and of publishing are not known, and are not among them.
    """

    name: str
    turn: int
    last: TurnReport | None


@dataclass(frozen=True)
class Status:
    """Everything that `headrace status` shows."""

    project: str
    streams: tuple[StreamStatus, ...]
    views: tuple[ViewStatus, ...]
    units: tuple[UnitStatus, ...]
    sinks: tuple[SinkStatus, ...]
    outbox_records: int
    sink_rows: int  # changes that wait to be published to sinks
    void_markers: int  # records in headrace.time that no engine of ours wrote; they change nothing
    bounds: Settings
    operators: tuple[OperatorStatus, ...] = ()
    written_rows: int = 0  # of written streams that wait to be published
    warnings: tuple[str, ...] = ()  # what may make an answer surprise, in sentences
    engine: EngineStatus | None = None  # None: none runs
    definitions: Drift | None = None  # None: those on disk are those that the ledger holds
    changes: tuple[ChangesStatus, ...] = ()  # of views that are followed

    def to_json(self) -> dict[str, Any]:
        """Return the same under the same names, as JSON takes it: raw numbers."""
        return asdict(self)


def take_status(
    project: str,
    snapshot: Snapshot,
    log: Log,
    settings: Settings,
    *,
    last_turns: Mapping[str, TurnReport] | None = None,
    engine: EngineStatus | None = None,
    definitions: Drift | None = None,
) -> Status:
    """Return the status at the snapshot's commit. LogError: the log cannot be read.

    `last_turns` are those of a running engine, which knows how long their commits took.
    """
    holdings = snapshot.holdings()
    units = snapshot.units()
    progress = {name: snapshot.progress(name) for name in units}
    counters, watermarks = totals_of(snapshot.counters()), snapshot.watermarks()
    rows, sizes = snapshot.state_rows(), snapshot.state_bytes()
    errors = snapshot.error_rows([_table_name(held) for held in holdings if _counts_errors(held)])
    tables = {_table_name(held): held for held in holdings if _is_table(held)}
    scattered = snapshot.scattered_keys(tables)
    sinks, waiting = snapshot.sinks(), snapshot.waiting_changes()
    topics = {held.owner: _topics(held) for held in holdings}
    read = {topic for each in topics.values() for topic in each.values()}
    ends = {topic: log.extents(topic) for topic in read & _known_topics(log)}
    streams: list[StreamStatus] = []
    views: list[ViewStatus] = []
    positions = TopicsRead()
    for held in holdings:
        positions.add(held, topics[held.owner], progress[held.unit])
        partitions = _partitions(topics[held.owner], progress[held.unit], ends)
        lag = sum(each.lag_records for each in partitions)
        counted = counters.get(held.owner, {})
        if held.kind == "stream":
            streams.append(
                StreamStatus(
                    name=held.name,
                    version=held.version,
                    topic=topics[held.owner][held.name],
                    state=held.state.value,
                    unit=held.unit,
                    lag_records=lag,
                    guarded=not counted.get("unguarded", 0),
                    watermark_us=_known(watermark_of_stream(progress[held.unit], held.name)),
                    counters={
                        name: counted.get(name, 0)
                        for name in (*STREAM_COUNTERS, *CHANGE_COUNTERS.values())
                        if name in counted or name in STREAM_COUNTERS
                    },
                    partitions=partitions,
                    readers=_names(
                        each.name
                        for each in holdings
                        if each.kind == "view"
                        and held.name in each.inputs
                        and each.name != held.name
                    ),
                    kind=stream_of(held, held.name).kind,
                )
            )
        else:
            views.append(
                ViewStatus(
                    name=held.name,
                    version=held.version,
                    inputs=held.inputs,
                    state=held.state.value,
                    reason=held.reason,
                    unit=held.unit,
                    state_rows=rows.get(_table_name(held), 0),
                    state_bytes_estimate=sizes.get(_table_name(held), 0),
                    lag_records=lag,
                    watermark_us=_known(watermarks[held.owner]),
                    counters={
                        name: counted.get(name, 0)
                        for name in (*VIEW_COUNTERS, *EXPANDED_COUNTERS)
                        if name in counted or name in VIEW_COUNTERS
                    },
                    error_rows=errors.get(_table_name(held)),
                    readers=_names(s.sink.name for s in sinks if s.sink.view == held.name),
                    topic=view_of(held).topic,
                    kind=view_of(held).kind,
                    scattered_keys=scattered.get(_table_name(held)),
                )
            )
    turned = tuple(
        UnitStatus(name, turn, _last_turn(snapshot, name, last_turns or {}))
        for name, turn in units.items()
    )
    return Status(
        project,
        tuple(streams),
        tuple(views),
        turned,
        tuple(
            SinkStatus(
                each.sink.name,
                each.sink.view,
                each.version,
                each.sink.topic,
                each.sink.mode,
                each.told,
                waiting[each.sink.topic],
                "paused" if each.paused else "live",
            )
            for each in sinks
        ),
        snapshot.outbox_records(),
        sum(waiting.values()),
        snapshot.void_markers(),
        settings,
        tuple(_operators(snapshot)),
        snapshot.written_count(),
        (
            *positions.warnings(ends),
            *(_scattered_text(tables[name], count) for name, count in scattered.items() if count),
            *placing_warnings(log, [stream_of(h, h.name) for h in holdings if h.kind == "stream"]),
        ),
        engine,
        definitions,
        tuple(
            ChangesStatus(
                view,
                each.since,
                each.rows,
                each.sinks,
                each.leases,
                each.always,
                each.held_bytes,
            )
            for view, each in snapshot.kept_changes().items()
        ),
    )


def _last_turn(
    snapshot: Snapshot, unit: str, last_turns: Mapping[str, TurnReport]
) -> TurnReport | None:
    kept = next(iter(snapshot.turns(unit)), None)
    timed = last_turns.get(unit)
    return timed if kept is not None and timed is not None and timed.turn == kept.turn else kept


def _operators(snapshot: Snapshot) -> Iterator[OperatorStatus]:
    for (unit, operator), runs in snapshot.manifests().items():
        sizes = {run.file: run.file_bytes for run in runs}
        rows = sum(run.rows for run in runs)
        size = sum(sizes.values())
        yield OperatorStatus(operator.kind, operator.name, unit, rows, size, len(sizes))


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _table_name(held: Holding) -> str:
    return f"{held.name}__{held.version}"


def _is_table(held: Holding) -> bool:
    return held.kind == "view" and view_of(held).kind == "table"


def _scattered_text(held: Holding, count: int) -> str:
    has = "has" if count == 1 else "have"
    return (
        f"table {held.name}: {counted_noun(count, 'key')} {has} changes in several partitions of "
        f"{stream_of(held, held.name).topic}, which have no order among them, so the row may not "
        f"be the newest. Let its producers use one key for a row, and one partitioner"
    )


def _counts_errors(held: Holding) -> bool:
    if _is_table(held):
        return False  # no expression of a table can fail
    aggregate = aggregate_of(view_of(held).query) if held.kind == "view" else None
    return aggregate is not None and (aggregate.window is None or not aggregate.window.overlaps)


def _topics(held: Holding) -> dict[str, str]:
    """Return the topics that a version reads, by stream."""
    return {name: stream_of(held, name).topic for name in held.inputs}


def _known_topics(log: Log) -> set[str]:
    return {topic.name for topic in log.topics()}


def _partitions(
    topics: Mapping[str, str],
    progress: Mapping[StreamPartition, Progress],
    ends: Mapping[str, Mapping[Partition, Extent]],
) -> tuple[PartitionStatus, ...]:
    found = []
    for key, place in progress.items():
        if key.stream not in topics:
            continue
        topic = topics[key.stream]
        extent = ends.get(topic, {}).get(Partition(topic, key.partition))
        end_offset = place.offset if extent is None else extent.end_offset
        clock = place.clock
        found.append(
            PartitionStatus(
                partition=key.partition,
                position=place.offset,
                end_offset=end_offset,
                lag_records=max(0, end_offset - place.offset),
                clock_us=_known(clock.time_us),
                watermark_us=_known(clock.watermark_us),
                delay_us=clock.delay_us,
                idle=clock.time_us > clock.records_us,
            )
        )
    return tuple(found)


def _known(time_us: int) -> int | None:
    return None if time_us == NEVER else time_us
