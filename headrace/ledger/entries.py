"""The entries of the ledger, as frozen values. A store keeps them; nothing here acts.

- `Progress`: how far a unit has read a partition of a stream, and the clock there.
- `Holding`: a version of a stream or view, and the unit that maintains it.
- `PlannedTurn`: what a turn will read; journalled before anything is read.
- `OutboxEntry`: records to publish after the commit, by their place in the log.
- `Written`: rows to publish after the commit to the topic of a stream that is written.
- `Manifest`: the files of state that a unit keeps of an operator.
- `Commit`: all that a turn did; becomes visible in one transaction or not at all.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import pyarrow as pa

from headrace.log.base import Range
from headrace.operators.state import Run
from headrace.plan.stages import Operator
from headrace.plan.tables import Table
from headrace.time.clocks import NEVER, Clock

__all__ = [
    "MAIN",
    "Commit",
    "Counted",
    "Counters",
    "Holding",
    "HoldingState",
    "Manifest",
    "OutboxEntry",
    "Owner",
    "PlannedTurn",
    "Progress",
    "Seed",
    "SetAside",
    "StreamPartition",
    "StreamRange",
    "TurnReport",
    "Written",
    "WrittenBy",
    "row_producer",
    "side_producer",
    "watermark_of",
    "watermark_of_stream",
]

#: The unit that all streams and views commit in, unless one replays or failed.
MAIN = "main"

Counters = Mapping[str, int]

#: The runs of state that a unit keeps of an operator.
Manifest = tuple[Run, ...]


class StreamPartition(NamedTuple):
    """A partition as one stream reads it."""

    stream: str
    partition: int


class StreamRange(NamedTuple):
    """A range of the log as one stream reads it."""

    stream: str
    range: Range


class Progress(NamedTuple):
    """The next offset to read, and the clock before the record that will stand there."""

    offset: int = 0
    clock: Clock = Clock()


def watermark_of_stream(progress: Mapping[StreamPartition, Progress], stream: str) -> int:
    """Return W of a stream, the smallest watermark of its partitions; NEVER if one has none."""
    watermarks = [
        place.clock.watermark_us for key, place in progress.items() if key.stream == stream
    ]
    return min(watermarks, default=NEVER)


def watermark_of(progress: Mapping[StreamPartition, Progress], streams: Iterable[str]) -> int:
    """Return W of a view over streams, the smallest of theirs."""
    return min(watermark_of_stream(progress, stream) for stream in streams)


class Owner(NamedTuple):
    """Whose counters: a version of a stream or of a view."""

    kind: str
    name: str
    version: str


class Counted(NamedTuple):
    """What counters are of: a version, and the one of its inputs that the records came from."""

    owner: Owner
    input: str


class HoldingState(StrEnum):
    """What a version is doing."""

    LIVE = "live"
    BUILDING = "building"
    FAILED = "failed"
    PAUSED = "paused"

    @property
    def stands_still(self) -> bool:
        """Whether it takes no turns until somebody does something about it."""
        return self in (HoldingState.FAILED, HoldingState.PAUSED)


@dataclass(frozen=True)
class Holding:
    """A version of a definition and the unit that maintains it.

    `forms` are its canonical form and those of its inputs, as JSON (definitions.py), so that an old
    version can go on while its successor is built; `text` is the statement as written, for people.
    `version` is the part of the fingerprint that names it.

    `evaluated` are the places of a view (its outputs by number, `o0`, and `having`) that Spark
    evaluates from merged rows: a later release, whose stores can say more, goes on with a version
    as it was begun.
    """

    kind: str  # "stream" or "view"
    name: str
    version: str
    unit: str
    inputs: tuple[str, ...]  # the streams that it reads; a stream reads itself
    fingerprint: str
    forms: tuple[str, ...]
    text: str
    state: HoldingState = HoldingState.LIVE
    reason: str = ""
    evaluated: tuple[str, ...] = ()

    @property
    def owner(self) -> Owner:
        """Whose counters these are."""
        return Owner(self.kind, self.name, self.version)


@dataclass(frozen=True)
class PlannedTurn:
    """What a turn will read."""

    unit: str
    turn: int
    epoch: int
    ranges: tuple[StreamRange, ...]

    @property
    def records(self) -> int:
        """How many offsets the turn spans."""
        return sum(entry.range.span for entry in self.ranges)


@dataclass(frozen=True)
class OutboxEntry:
    """Records of one source partition to publish to the partition of the same number of `topic`.

    `offsets` grow; `reasons` stand beside them. The producer's id names the set, and the offset is
    its sequence: a record of a set can be appended once only, however often it is published.
    """

    topic: str
    source: Range
    producer_id: str
    offsets: pa.Array
    reasons: pa.Array


def side_producer(topic: str, version: str, source: str, sources: Collection[str]) -> str:
    """Return the id of the producer that puts records of one source topic aside.

    Offsets are its sequence, so each of several source topics has a producer of its own.
    """
    id = f"{topic}@{version}"
    return id if len(sources) == 1 else f"{source}>{id}"


@dataclass(frozen=True)
class Written:
    """Rows that a turn adds to a stream which is written to a topic: those of one source stream.

    `ends` says how far the turn has read the partitions of the source topic. The producer of a
    partition's rows is `producer` with its number; its sequence grows with offset and ordinal. So a
    row can be appended once only, however often it is published, and by whichever version.
    """

    table: Table
    source: str
    producer: str
    ends: Mapping[int, int]
    rows: tuple[pa.Table, ...]


class WrittenBy(NamedTuple):
    """Which version writes the rows of one source partition: those of `[from_offset, next_offset)`.

    Earlier ones were written by the versions before it.
    """

    topic: str
    producer_id: str
    version: str
    from_offset: int
    next_offset: int


def row_producer(stream: str, source: str) -> str:
    """Return the producer of a written stream's rows; its id is this, `/` and the partition."""
    return f"headrace.stream:{stream}<{source}"


@dataclass(frozen=True)
class SetAside:
    """A view that leaves its unit, at the position where the turn began."""

    view: str
    version: str
    reason: str
    state: HoldingState


@dataclass(frozen=True)
class Seed:
    """The clock at an offset of a stream version: where a replay can begin to stamp.

    It knows the markers before `time_offset` of their topic.
    """

    stream: str
    version: str
    partition: int
    progress: Progress
    time_offset: int = 0


@dataclass(frozen=True)
class TurnReport:
    """What one turn did, for people: the log line, status and the dashboard.

    `newest_arrival_us` is when the last of its records came to the log. The ledger does not keep
    it: None there, and where the log stamps no arrivals.
    """

    unit: str
    turn: int
    gear: str
    records: int
    late: int
    dead: int
    milliseconds: Mapping[str, float]
    newest_arrival_us: int | None = None


@dataclass(frozen=True)
class Commit:
    """All that a turn did; `time_offset` is how far it has read the topic of markers.

    `manifests` are by operator; one that is not there stays as it is. `watermarks` are those of
    the views whose W moves with this turn; NEVER is -infinity.
    """

    planned: PlannedTurn
    time_offset: int
    progress: Mapping[StreamPartition, Progress]
    deltas: Mapping[Table, tuple[pa.Table, ...]]
    counters: Mapping[Counted, Counters]
    outbox: tuple[OutboxEntry, ...]
    report: TurnReport
    set_aside: tuple[SetAside, ...] = ()
    void_markers: int = 0  # found so far
    seeds: tuple[Seed, ...] = field(default=())
    manifests: Mapping[Operator, Manifest] = field(default_factory=dict)
    watermarks: Mapping[Owner, int] = field(default_factory=dict)
    written: tuple[Written, ...] = ()
    #: Tables whose rows are gone, by partition: those of changes up to that offset.
    truncates: Mapping[Table, Mapping[int, int]] = field(default_factory=dict)
