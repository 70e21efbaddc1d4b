"""The default store: tables and ledger in one DuckDB file, owned by one process.

A commit is one DuckDB transaction, so tables, positions, clocks, counters and outbox become
visible together; its write-ahead log is synced before `commit` returns. Staged deltas stay in
memory: after a crash the journalled range runs again and makes them anew.
"""

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyarrow as pa

from headrace import faults
from headrace.errors import EngineFenced, MergeFailed, StoreError
from headrace.ledger.entries import (
    MAIN,
    Commit,
    Holding,
    PlannedTurn,
    Progress,
    Seed,
    SetAside,
    StreamPartition,
    StreamRange,
    TurnReport,
)
from headrace.ledger.following import Changed, Followers, Token
from headrace.ledger.laws import check_laws
from headrace.log.base import Partition, Range
from headrace.plan.tables import Table
from headrace.store.base import Evaluate
from headrace.store.duckdb.changes.following import head_of
from headrace.store.duckdb.changes.keeping import ChangeKeeping, Making
from headrace.store.duckdb.changes.reading import check_token, head_token
from headrace.store.duckdb.changes.swapping import begin_swaps, end_swaps
from headrace.store.duckdb.commit import blame_for_memory, count_commit, write_turn
from headrace.store.duckdb.errors import damaged, lacks_memory
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.schema import SCHEMA, SCHEMA_VERSION
from headrace.store.duckdb.snapshot import DuckDBSnapshot
from headrace.store.duckdb.standing import Standings
from headrace.store.duckdb.tables.statements import (
    create,
    create_errors,
    show,
    show_errors,
)
from headrace.store.duckdb.versions import (
    CLOCK,
    drop_versions,
    hold_versions,
    join_main,
    read_clock,
    set_aside,
)

__all__ = ["DuckDBStore"]


class DuckDBStore:
    """Tables and ledger in `path`.

    StoreBusy: another process has it open. Unreachable: read only, and there is no store yet.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self._file = DuckDBFile(path, read_only=read_only)
        self._keeping = ChangeKeeping(self._file)
        self._standings = Standings()
        self._tables: Mapping[str, Table] = {}  # that readers see, by view; never changed
        self.path = self._file.path
        try:
            with nullcontext() if read_only else self._file.transaction():
                if not read_only and self._schema_version() is None:
                    self._create_schema()
                self._check_schema()
            self._file.lock_down()
        except BaseException:
            self._file.close()
            raise

    @property
    def state_folder(self) -> Path:
        """Where files of operator state are kept that this store's manifests name, and no other."""
        return self.path.with_name(f"{self.path.name}.state")

    def _create_schema(self) -> None:
        for statement in SCHEMA:
            self._file.run(statement)
        # The epoch begins at the clock, so that a store made anew is newer than the one before it
        # to the log, which remembers the epochs of its producers.
        self._file.run(
            "INSERT INTO headrace.engine SELECT ?, ?, ?, 0 WHERE NOT EXISTS (FROM headrace.engine)",
            [SCHEMA_VERSION, int(time.time()), uuid.uuid4().hex[:12]],
        )
        self._file.run(
            "INSERT INTO headrace.units SELECT ?, 0, 0, 0, NULL, NULL "
            "WHERE NOT EXISTS (FROM headrace.units)",
            [MAIN],
        )

    def _schema_version(self) -> int | None:
        if not self._file.rows(
            "FROM duckdb_tables() WHERE schema_name = 'headrace' AND table_name = 'engine'"
        ):
            return None
        return int(self._file.rows("SELECT schema_version FROM headrace.engine")[0][0])

    def _check_schema(self) -> None:
        if (found := self._schema_version()) is None:
            # DuckDB passes over a write-ahead log that is cut, or no such log at all.
            raise damaged(
                f"{self.path} has no ledger, so its write-ahead log is damaged or another program "
                f"made the file"
            )
        if found != SCHEMA_VERSION:
            later = found > SCHEMA_VERSION
            advice = "Start the release that wrote it; or move" if later else "Move"
            raise StoreError(
                f"{self.path}: written by {'a later' if later else 'another'} release (format "
                f"{found}, this one reads {SCHEMA_VERSION}). {advice} it away; `headrace "
                f"run` builds it anew from the log."
            )

    def begin_epoch(self, after: int = 0) -> int:
        """Take over: return a new epoch, greater than `after`; no older one commits any more."""
        with self._file.transaction():
            self._file.run("UPDATE headrace.engine SET epoch = greatest(epoch, ?) + 1", [after])
            return self._newest_epoch()

    @contextmanager
    def open(self) -> Iterator[DuckDBSnapshot]:
        """Open the last committed state for reading."""
        with self._file.cursor() as cursor:
            snapshot = DuckDBSnapshot(
                cursor,
                self._file.outside.running,
                self._standings,
                self._keeping,
                self._tables,
            )
            snapshot.begin()
            yield snapshot

    def prepare(self, table: Table) -> None:
        """Make the physical table of a version unless it is there; readers do not see it yet."""
        with self._file.transaction():
            for each in (table, *table.children):
                self._file.run(create(each))
            if table.errors_name is not None:
                self._file.run(create_errors(table))

    def hold(
        self,
        epoch: int,
        holdings: Sequence[Holding],
        progress: Mapping[str, Mapping[StreamPartition, Progress]],
    ) -> None:
        """Enter new versions and, for new units, where they begin to read."""
        with self._file.transaction():
            self._check_epoch(epoch)
            hold_versions(self._file, holdings, progress)
        self._standings.forget()

    def show(
        self, epoch: int, unit: str, tables: Sequence[Table], older: Sequence[Table] = ()
    ) -> Changed:
        """Give tables their public names; versions that a unit brings replace the older ones."""
        changed: Changed = frozenset()

        def write() -> None:
            nonlocal changed
            changed = self._show(epoch, unit, tables, older)

        try:
            with self._keeping.changing():
                self._file.write_first(write)
            self._tables = {**self._tables, **{table.view: table for table in tables}}
        except StoreError as error:
            if not lacks_memory(error) or not tables:
                raise
            view = tables[0].view
            raise MergeFailed(
                f"view {view}: the store has too little memory to swap it in: {error}", view=view
            ) from error
        return changed

    def _show(
        self, epoch: int, unit: str, tables: Sequence[Table], older: Sequence[Table]
    ) -> Changed:
        self._check_epoch(epoch)
        followed = {view for (view,) in self._file.rows("SELECT view FROM headrace.followed")}
        swaps = begin_swaps(self._file, tables, older, followed)
        if unit != MAIN:
            join_main(self._file, unit)
        for table in tables:
            self._file.run(show(table))
            self._file.run(show_errors(table))
        count_commit(self._file)
        end_swaps(self._file, swaps, head_of(self._file.rows))
        self._keeping.forget()
        for swap in swaps:
            if swap.is_followed:
                self._keeping.measure(swap.table, head_of(self._file.rows))
        return frozenset(swap.table.view for swap in swaps if swap.is_followed)

    def set_followers(self, epoch: int, followers: Followers, tables: Mapping[str, Table]) -> None:
        """Let sinks, and views that always keep their changes, be these."""
        with self._keeping.changing(), self._file.transaction():
            self._check_epoch(epoch)
            self._keeping.set_followers(followers, tables)

    def set_aside(self, epoch: int, unit: str, asides: Sequence[SetAside]) -> None:
        """Move views out of a unit to their own, at its position. EngineFenced."""
        with self._file.transaction():
            self._check_epoch(epoch)
            for aside in asides:
                set_aside(self._file, unit, aside)
        self._standings.forget()

    def begin_publishing(self, topics: Sequence[str]) -> None:
        """Note that sinks which are told of several commits as one are on their way to this one."""
        with self._keeping.changing(), self._file.transaction():
            self._keeping.begin_publishing(topics)

    def pause_sink(self, epoch: int, topic: str, *, paused: bool) -> None:
        """Let a sink be told nothing, or go on. EngineFenced."""
        with self._keeping.changing(), self._file.transaction():
            self._check_epoch(epoch)
            self._keeping.pause_sink(topic, paused)

    def told(self, commits: Mapping[str, int], *, may_wait: bool = False) -> None:
        """Note that sinks have all changes up to a commit, by topic; drop what nobody needs."""
        if may_wait and self._keeping.defer_told(commits):
            return
        if commits or self._keeping.unwritten:
            with self._keeping.safe(), self._file.transaction():
                self._keeping.told(commits)

    def follow(self, lease: str, view: str, after: Token | None = None) -> Token:
        """Let a reader follow a view, after a token or from the last commit on."""
        with self._keeping.changing(), self._file.transaction():
            rows = self._file.rows
            token = head_token(rows, view) if after is None else after
            if after is not None:
                check_token(rows, view, after)
            self._keeping.follow(lease, view, token)
            return token

    def renew(self, lease: str, token: Token) -> None:
        """Note up to where a reader has the changes. TokenTooOld: its lease has ended."""
        self._keeping.renew(lease, token)

    def unfollow(self, lease: str) -> None:
        """Let a reader go."""
        with self._keeping.changing(), self._file.transaction():
            self._keeping.unfollow(lease)

    def wrote(self, number: int) -> None:
        """Forget rows of written streams that are in the log, up to a number."""
        with self._file.transaction():
            self._file.run("DELETE FROM headrace.written_rows WHERE number <= ?", [number])

    def drop(self, epoch: int, holdings: Sequence[Holding]) -> None:
        """Forget versions that no definition names any more, and their tables."""
        with self._keeping.changing(), self._file.transaction():
            self._check_epoch(epoch)
            self._keeping.write_told()
            drop_versions(self._file, holdings)
        gone = {(held.name, held.version) for held in holdings}
        self._tables = {
            view: table for view, table in self._tables.items() if (view, table.version) not in gone
        }
        self._standings.forget()

    def journal(self, planned: PlannedTurn) -> None:
        """Note what a turn will read, before it reads. EngineFenced."""
        ranges = [
            [entry.stream, *entry.range.partition, entry.range.start, entry.range.end]
            for entry in planned.ranges
        ]
        with self._file.transaction():
            self._check_turn(planned)
            self._file.run(
                "UPDATE headrace.units SET planned_epoch = ?, planned_ranges = ? WHERE unit = ?",
                [planned.epoch, json.dumps(ranges), planned.unit],
            )

    def journalled(self, unit: str) -> PlannedTurn | None:
        """Return the turn that a unit had planned and not committed."""
        rows = self._file.rows(
            "SELECT turn + 1, planned_epoch, planned_ranges FROM headrace.units "
            "WHERE unit = ? AND planned_ranges IS NOT NULL",
            [unit],
        )
        if not rows:
            return None
        turn, epoch, text = rows[0]
        ranges = tuple(
            StreamRange(stream, Range(Partition(topic, partition), start, end))
            for stream, topic, partition, start, end in json.loads(text)
        )
        return PlannedTurn(unit, turn, epoch, ranges)

    def stage(self, table: Table, delta: pa.Table) -> pa.Table:
        """Bring a delta into the table's columns and types; nobody can see it yet. MergeFailed."""
        schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
        try:
            return delta.select(schema.names).cast(schema)
        except pa.ArrowInvalid as error:
            raise MergeFailed(
                f"view {table.view}: its delta does not fit its table: {error}", view=table.view
            ) from error

    def commit(self, commit: Commit, evaluate: Evaluate | None = None) -> Changed:
        """Make a turn visible; return which views that are followed changed.

        EngineFenced, MergeFailed (names the view), DiskFull.
        """
        check_laws(commit.counters)
        tried = False
        making: Making | None = None
        number = 0

        def write() -> None:
            nonlocal tried, making, number
            # DuckDB may lack memory for its checkpoint when the transaction is committed already.
            if not (tried and self._is_committed(commit.planned)):
                if tried:
                    self._keeping.forget()  # what was read within the try that was rolled back
                tried = True
                number = self._check_turn(commit.planned) + 1
                making = write_turn(self._file, commit, number, self._keeping, evaluate)
                faults.reach("before_commit")

        try:
            with self._keeping.safe():
                self._file.write_first(write)
        except StoreError as error:
            if not lacks_memory(error):
                raise
            if not self._is_committed(commit.planned):
                raise blame_for_memory(commit, error) or error from error
        self._standings.advance(commit, number)
        assert making is not None
        self._keeping.committed(commit, number, making)
        faults.reach("after_commit")
        return frozenset(making.changed)

    def _is_committed(self, planned: PlannedTurn) -> bool:
        """Return whether this very turn, of this engine, is in the ledger."""
        place = [planned.unit, planned.turn, planned.epoch]
        known = "SELECT 1 FROM headrace.turns WHERE unit = ? AND turn = ? AND epoch = ?"
        return bool(self._file.rows(known, place))

    def keep_times(self, epoch: int, turns: Sequence[TurnReport]) -> None:
        """Note how long turns took that are committed already. EngineFenced."""
        with self._file.transaction():
            self._check_epoch(epoch)
            for each in turns:
                self._file.run(
                    "UPDATE headrace.turns SET milliseconds = ? WHERE unit = ? AND turn = ?",
                    [json.dumps(dict(each.milliseconds)), each.unit, each.turn],
                )

    def published(self, numbers: Sequence[int]) -> None:
        """Forget outbox entries that are in the log."""
        with self._file.transaction():
            self._file.run(
                "DELETE FROM headrace.outbox WHERE list_contains(?, number)", [list(numbers)]
            )

    def seeds(self, stream: str, version: str) -> list[Seed]:
        """Return the saved clocks of a stream version, by partition and offset."""
        rows = self._file.rows(
            f"SELECT partition, next_offset, time_offset, {CLOCK} FROM headrace.seeds "
            "WHERE stream = ? AND version = ? ORDER BY partition, next_offset",
            [stream, version],
        )
        return [
            Seed(stream, version, partition, Progress(offset, read_clock(clock)), time_offset)
            for partition, offset, time_offset, *clock in rows
        ]

    def close(self) -> None:
        """End queries under way and release the store. StoreBusy: one does not end."""
        self._file.close()

    def _newest_epoch(self) -> int:
        return int(self._file.rows("SELECT epoch FROM headrace.engine")[0][0])

    def _check_epoch(self, epoch: int, newest: int | None = None) -> None:
        newest = self._newest_epoch() if newest is None else newest
        if newest != epoch:
            raise EngineFenced(
                f"epoch {epoch} may not write any more: an engine of epoch {newest} took over. "
                f"Stop this one."
            )

    def _check_turn(self, planned: PlannedTurn) -> int:
        """Return the number of the last commit. EngineFenced: the turn is not the next one."""
        # One statement for all: each costs every turn a millisecond.
        newest, commits, last = self._file.rows(
            "SELECT epoch, commits, (SELECT turn FROM headrace.units WHERE unit = ?) "
            "FROM headrace.engine",
            [planned.unit],
        )[0]
        self._check_epoch(planned.epoch, newest)
        if last is None:
            raise EngineFenced(
                f"unit {planned.unit}: there is no such unit any more; it was swapped in or "
                f"dropped. Another engine turns this project; stop one of them."
            )
        if last != planned.turn - 1:
            raise EngineFenced(
                f"unit {planned.unit}: turn {planned.turn} does not follow turn {last}, the last "
                f"one committed. Another engine turns this unit; stop one of them."
            )
        return int(commits)
