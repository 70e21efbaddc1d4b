"""What a store is to the engine: tables and ledger behind one commit.

Promises every implementation keeps, held by `headrace.testing.store.contract`:
- `commit` makes all of a turn visible at once, or nothing of it, whatever crashes.
- Only the newest epoch commits, and a unit's turns commit once, in order: EngineFenced otherwise.
- A snapshot sees one committed state of everything for as long as it is open.
- A row on which an expression over its aggregates fails is not shown. Its key and the error are in
  `<view>.errors`, beside the view's public name, until its states change. Reading never fails.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from headrace.ledger.entries import (
    Commit,
    Counted,
    Counters,
    Holding,
    Manifest,
    OutboxEntry,
    Owner,
    PlannedTurn,
    Progress,
    Seed,
    SetAside,
    StreamPartition,
    TurnReport,
    WrittenBy,
)
from headrace.ledger.following import Changed, Followers, Page, SinkState, Token
from headrace.plan.stages import Operator
from headrace.plan.tables import Table
from headrace.schema.relations import Relation
from headrace.store.asking import Found, Selection, Standing

__all__ = [
    "MAX_ORDINALS",
    "MAX_ROWS",
    "MAX_SECONDS",
    "ROW",
    "WRITTEN_ROWS",
    "Evaluate",
    "KeptChanges",
    "PublicColumn",
    "PublicRows",
    "PublicTable",
    "SinkChanges",
    "Snapshot",
    "Store",
]

MAX_ROWS = 10_000  # of a query from outside
MAX_SECONDS = 30.0

#: The column that tells the rows apart which are evaluated: a number, and no two are the same.
ROW = "__row"
#: Evaluates what the store cannot (`Table.evaluated`), of some rows of each table. It is given ROW
#: and `Table.evaluated_inputs`, and returns ROW and the columns, in any order. MergeFailed.
Evaluate: TypeAlias = Callable[[Mapping[Table, pa.Table]], Mapping[Table, pa.Table]]

#: How many rows a record may become where they are written: a row's sequence is its record's offset
#: times this, plus its number among the rows of the record.
MAX_ORDINALS = 1 << 20
#: Rows of written streams: where each came from, and the record that it becomes. `branch` and
#: `ordinals` are null where partition and offset tell the rows apart; without `by_key` a row goes
#: to the partition of the same number as its source's.
WRITTEN_ROWS = pa.schema(
    [
        ("number", pa.int64()),
        ("topic", pa.string()),
        ("producer_id", pa.string()),
        ("version", pa.string()),
        ("source_topic", pa.string()),
        ("source_partition", pa.int32()),
        ("source_offset", pa.int64()),
        ("sequence", pa.int64()),
        ("branch", pa.int32()),
        ("ordinals", pa.string()),
        ("watermark_us", pa.int64()),
        ("by_key", pa.bool_()),
        ("key", pa.binary()),
        ("value", pa.string()),
    ]
)


@dataclass(frozen=True)
class SinkChanges:
    """What a sink is told of one commit, or of several as one: a row for each key that changed.

    `rows` has the columns that `schema.envelopes.Envelope.encode` takes; `old` and `new` are the
    relations of the rows before and after. `commit` and `step` tell where they stand in the order
    of all; `is_first`: rows that were there when the sink began.
    """

    commit: int
    step: int
    version: str
    old: Relation
    new: Relation
    rows: Callable[[], Iterator[pa.RecordBatch]]  # each call reads them anew
    is_first: bool = False


class PublicColumn(NamedTuple):
    """A column of a relation that readers see, and its type as a query would write it."""

    name: str
    type: str


@dataclass(frozen=True)
class PublicTable:
    """A relation that readers see: a view, or its errors."""

    name: str
    columns: tuple[PublicColumn, ...]


@dataclass(frozen=True)
class PublicRows:
    """Rows of a relation that readers see; `batches` are read while they are taken."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class KeptChanges:
    """Changes of a view that are kept after the commit `since`, and for how many readers.

    `held_bytes` are in memory, of the last ones and of the rows they end with.
    """

    since: int
    rows: int
    sinks: int
    leases: int
    always: bool
    held_bytes: int = 0


class Snapshot(Protocol):
    """One committed state, for reading."""

    def query(
        self, sql: str, *, max_rows: int | None = MAX_ROWS, max_seconds: float = MAX_SECONDS
    ) -> pa.Table:
        """Answer one reading statement. QueryRefused: not one, it fails, or past its limits.

        A query that failed while it ran may end the snapshot: open another.
        """
        ...

    def standing(self, view: str) -> Standing:
        """Return where a view stands. ViewNotFound: readers see none of that name."""
        ...

    def rows(
        self,
        view: str,
        asked: Selection,
        *,
        errors: bool = False,
        max_bytes: int,
        max_seconds: float = MAX_SECONDS,
    ) -> Found:
        """Return rows that readers see of a view or, with `errors`, why rows of it failed.

        The selection is made from what `standing` of the same snapshot says, and has a limit.
        QueryRefused: it takes too long. ViewNotFound: a view without such errors.
        """
        ...

    def keyed_batches(
        self, view: str, asked: Selection, *, max_seconds: float
    ) -> Iterator[pa.RecordBatch]:
        """Yield what `keyed_rows` returns of the rows and columns that are asked for, in batches.

        Nothing else may be read from the snapshot until all of them were. QueryRefused.
        """
        ...

    def public_tables(self) -> tuple[PublicTable, ...]:
        """Return all relations that readers see: views and their errors, by name."""
        ...

    def least_bytes(self, table: PublicTable, columns: Sequence[str], *, most: int) -> int:
        """Return how many bytes columns of a relation take at least; 0: no more than `most`.

        From the widths of their types, a text counted as 4 bytes.
        """
        ...

    def public_rows(self, table: str, columns: Sequence[str]) -> AbstractContextManager[PublicRows]:
        """Read columns of a relation that readers see, in batches.

        StoreError: a commit needed the memory, or the store was closed.
        """
        ...

    def last_end(self, table: Table) -> int | None:
        """Return when the last window of a table ends, in microseconds; None: it has none."""
        ...

    def day_starts(self, zone: str, days: int) -> pa.ChunkedArray:
        """Return when the days of a time zone begin, from 1970-01-01, in microseconds."""
        ...

    def export(self, sink: BinaryIO, table: str | None = None) -> None:
        """Write the ledger, for another process to compare; `opening.opening_exports` reads it.

        With the name of a physical table its rows, and the position that they stand for.
        StoreError: there is no such table.
        """
        ...

    def states(self, table: Table) -> pa.Table:
        """Return the rows of a physical table: keys and merged states."""
        ...

    def holdings(self) -> list[Holding]:
        """Return every version and the unit that maintains it."""
        ...

    def progress(self, unit: str) -> dict[StreamPartition, Progress]:
        """Return how far a unit has read."""
        ...

    def counters(self) -> dict[Counted, Counters]:
        """Return the counters of every version, by input."""
        ...

    def watermarks(self) -> dict[Owner, int]:
        """Return W of every view; NEVER is -infinity."""
        ...

    def commits(self) -> int:
        """Return how many commits the store has seen: the number of this one."""
        ...

    def turns(self, unit: str, *, last: int = 1) -> list[TurnReport]:
        """Return the last turns of a unit, newest first."""
        ...

    def units(self) -> dict[str, int]:
        """Return every unit and its last committed turn."""
        ...

    def time_offset(self, unit: str) -> int:
        """Return how far a unit has read the topic of markers."""
        ...

    def void_markers(self) -> int:
        """Return how many records of the topic of markers the main unit found void."""
        ...

    def outbox(self) -> list[tuple[int, OutboxEntry]]:
        """Return what is to be published, in order, with its number."""
        ...

    def outbox_records(self) -> int:
        """Return how many records wait to be published."""
        ...

    def store_id(self) -> str:
        """Return what tells this store from every other one, also one made in its place."""
        ...

    def sinks(self) -> list[SinkState]:
        """Return every sink and how far it is."""
        ...

    def sink_changes(self, state: SinkState) -> Iterator["SinkChanges"]:
        """Yield what a sink is to be told up to this commit, in order.

        Where several commits are told as one, up to the commit that `begin_publishing` noted.
        """
        ...

    def shown(self) -> dict[str, str]:
        """Return the version that readers see of every view."""
        ...

    def waiting_changes(self) -> dict[str, int]:
        """Return how many changes wait for each sink, by its topic."""
        ...

    def keyed_rows(self, view: str) -> pa.Table:
        """Return all rows of a view: `_closed`, `_key` (a struct), and its columns.

        TokenRefused: there is no such view.
        """
        ...

    def token(self, view: str) -> Token:
        """Return the token of this commit for a view. TokenRefused: there is no such view."""
        ...

    def changes(
        self, view: str, after: Token, *, max_rows: int, max_bytes: int | None = None
    ) -> Page:
        """Return what followed a token, at most so many rows. TokenRefused, TokenTooOld.

        At most about so many bytes of Arrow too, but one row at least.
        """
        ...

    def leases(self) -> dict[str, str]:
        """Return the view that each reader with a lease follows."""
        ...

    def kept_changes(self) -> dict[str, "KeptChanges"]:
        """Return what is kept of the changes of every view that is followed."""
        ...

    def written_rows(self, *, max_rows: int, max_bytes: int) -> pa.Table:
        """Return the next rows of written streams to be published, in order, as WRITTEN_ROWS.

        Returns no rows only if none is pending; one row more than `max_bytes` at most.
        """
        ...

    def written_count(self) -> int:
        """Return how many rows of written streams wait to be published."""
        ...

    def written_by(self) -> list[WrittenBy]:
        """Return which version writes the rows of every source partition, and how far it is."""
        ...

    def manifests(self) -> dict[tuple[str, Operator], Manifest]:
        """Return the runs of state by unit and operator."""
        ...

    def state_rows(self) -> dict[str, int]:
        """Return how many rows every version has, items too, by the name of its own table."""
        ...

    def error_rows(self, tables: Collection[str]) -> dict[str, int]:
        """Return how many rows the errors have of some versions, by the names of their tables.

        Those that have no errors are left out. All rows of the tables are read for it.
        """
        ...

    def scattered_keys(self, tables: Collection[str]) -> dict[str, int]:
        """Return of some tables how many keys have changes in several partitions, by table.

        Of those that are there; two columns of all rows are read for it.
        """
        ...

    def state_bytes(self) -> dict[str, int]:
        """Return about how many bytes those rows hold, before the store compresses them.

        An estimate: widths of types, and for texts and lists the average of some rows.
        """
        ...


class Store(Protocol):
    """Tables and ledger. One engine writes; any number of threads read."""

    @property
    def state_folder(self) -> Path:
        """Where files of operator state are kept that this store's manifests name, and no other."""
        ...

    def begin_epoch(self, after: int = 0) -> int:
        """Take over: return a new epoch, greater than `after`; no older one commits any more."""
        ...

    def open(self) -> AbstractContextManager[Snapshot]:
        """Open the last committed state for reading."""
        ...

    def prepare(self, table: Table) -> None:
        """Make the physical tables of a version unless they are there; nobody sees them yet."""
        ...

    def hold(
        self,
        epoch: int,
        holdings: Sequence[Holding],
        progress: Mapping[str, Mapping[StreamPartition, Progress]],
    ) -> None:
        """Enter new versions and, for new units, where they begin to read."""
        ...

    def journal(self, planned: PlannedTurn) -> None:
        """Note what a turn will read, before it reads. EngineFenced."""
        ...

    def journalled(self, unit: str) -> PlannedTurn | None:
        """Return the turn that a unit had planned and not committed."""
        ...

    def stage(self, table: Table, delta: pa.Table) -> pa.Table:
        """Bring a delta into the table's columns and types; nobody can see it yet."""
        ...

    def commit(self, commit: Commit, evaluate: Evaluate | None = None) -> Changed:
        """Make a turn visible; return which views that are followed changed.

        `evaluate` is called with the merged rows that the turn changed, of tables that have
        something to evaluate, before anything else reads them; perhaps more than once.
        EngineFenced, MergeFailed (names the view), DiskFull.
        """
        ...

    def show(
        self, epoch: int, unit: str, tables: Sequence[Table], older: Sequence[Table] = ()
    ) -> Changed:
        """Give tables, and their errors, public names; new versions of a unit replace older ones.

        In one transaction: the unit's holdings and progress pass to the main unit, whose position
        must be the same; replaced versions are dropped. Where views are followed, how their rows
        differ from those of the `older` tables becomes changes. Returns which views these are.
        """
        ...

    def set_followers(self, epoch: int, followers: Followers, tables: Mapping[str, Table]) -> None:
        """Let sinks, and views that always keep their changes, be these.

        `tables` are those that readers see, by view: a new sink begins with all rows of its own.
        All that sinks were to be told before must be published.
        """
        ...

    def set_aside(self, epoch: int, unit: str, asides: Sequence[SetAside]) -> None:
        """Move views out of a unit to their own, at its position. EngineFenced."""
        ...

    def begin_publishing(self, topics: Sequence[str]) -> None:
        """Note that sinks which are told of several commits as one are on their way to this one."""
        ...

    def pause_sink(self, epoch: int, topic: str, *, paused: bool) -> None:
        """Note that a sink is told nothing, or goes on; what it is owed waits. EngineFenced."""
        ...

    def told(self, commits: Mapping[str, int], *, may_wait: bool = False) -> None:
        """Note that sinks have all changes up to a commit, by topic; drop what nobody needs.

        With `may_wait` the store may keep that in memory and write it with a later call, which may
        be one without commits; snapshots show it at once.
        """
        ...

    def follow(self, lease: str, view: str, after: Token | None = None) -> Token:
        """Let a reader follow a view, after a token or from the last commit on.

        From now on changes are made and kept for it, until it lets go or is too far behind.
        TokenRefused, TokenTooOld.
        """
        ...

    def renew(self, lease: str, token: Token) -> None:
        """Note up to where a reader has the changes. TokenTooOld: its lease has ended."""
        ...

    def unfollow(self, lease: str) -> None:
        """Let a reader go."""
        ...

    def wrote(self, number: int) -> None:
        """Forget rows of written streams that are in the log, up to a number."""
        ...

    def drop(self, epoch: int, holdings: Sequence[Holding]) -> None:
        """Forget versions that no definition names any more, and their tables."""
        ...

    def keep_times(self, epoch: int, turns: Sequence[TurnReport]) -> None:
        """Note how long turns took that are committed already: their commit was part of it."""
        ...

    def published(self, numbers: Sequence[int]) -> None:
        """Forget outbox entries that are in the log."""
        ...

    def seeds(self, stream: str, version: str) -> list[Seed]:
        """Return the saved clocks of a stream version, by partition and offset."""
        ...

    def close(self) -> None:
        """Release the store."""
        ...
