"""The default store: tables and ledger in one DuckDB file, owned by one process.

A commit is one DuckDB transaction, so tables, positions, clocks, counters and outbox become
visible together; its write-ahead log is synced before `commit` returns. Staged deltas stay in
memory: after a crash the journalled range runs again and makes them anew.
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from headrace import faults
from headrace.errors import DiskFull, EngineFenced, MergeFailed, StoreBusy, StoreError
from headrace.ledger.entries import (
    MAIN,
    Commit,
    Holding,
    HoldingState,
    OutboxEntry,
    PlannedTurn,
    Progress,
    Seed,
    SetAside,
    StreamPartition,
    StreamRange,
)
from headrace.ledger.laws import check_laws
from headrace.log.base import Partition, Range
from headrace.plan.tables import Table, quote
from headrace.store.duckdb_schema import SCHEMA, SCHEMA_VERSION
from headrace.store.duckdb_snapshot import DuckDBSnapshot
from headrace.store.duckdb_tables import create, merge, physical, show
from headrace.time.clocks import NEVER

__all__ = ["DuckDBStore"]

MEMORY_LIMIT = "2GB"  # of DuckDB's own buffers; past it, queries spill to disk or fail
KEPT_TURNS = 1_000  # reports of turns, per unit


class DuckDBStore:
    """Tables and ledger in `path`. StoreBusy: another process has it open."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        if not read_only:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._connection = duckdb.connect(
                str(self.path),
                read_only=read_only,
                config={"memory_limit": MEMORY_LIMIT, "autoinstall_known_extensions": "false"},
            )
        except duckdb.IOException as error:
            if "lock" in str(error):
                raise StoreBusy(
                    f"{self.path}: another process has the store open. While an engine runs, ask "
                    f"it: `headrace sql`, `headrace status`."
                ) from error
            raise _translate(error) from error
        connection = self._connection
        connection.execute("SET TimeZone = 'UTC'")
        if not read_only:
            os.chmod(self.path, 0o600)
            with self._transaction():
                self._create_schema()
        connection.execute("SET enable_external_access = false")
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET lock_configuration = true")

    def _create_schema(self) -> None:
        for statement in SCHEMA:
            self._connection.execute(statement)
        # The epoch begins at the clock, so that a store made anew is newer than the one before it
        # to the log, which remembers the epochs of its producers.
        self._connection.execute(
            "INSERT INTO headrace.engine SELECT ?, ? WHERE NOT EXISTS (FROM headrace.engine)",
            [SCHEMA_VERSION, int(time.time())],
        )
        self._connection.execute(
            "INSERT INTO headrace.units SELECT ?, 0 WHERE NOT EXISTS (FROM headrace.units)", [MAIN]
        )
        found = self._value("SELECT schema_version FROM headrace.engine")
        if found != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path}: written by another release (format {found}, this one reads "
                f"{SCHEMA_VERSION}). Move it away; `headrace run` builds it anew from the log."
            )

    def begin_epoch(self) -> int:
        """Take over: return a new epoch, after which no older one commits."""
        with self._transaction():
            self._connection.execute("UPDATE headrace.engine SET epoch = epoch + 1")
            return self._value("SELECT epoch FROM headrace.engine")

    @contextmanager
    def open(self) -> Iterator[DuckDBSnapshot]:
        """Open the last committed state for reading."""
        try:
            cursor = self._connection.cursor()
            cursor.execute("BEGIN TRANSACTION READ ONLY")
        except duckdb.Error as error:
            raise _translate(error) from error
        try:
            yield DuckDBSnapshot(cursor)
        finally:
            cursor.close()

    def prepare(self, table: Table) -> None:
        """Make the physical table of a version unless it is there; readers do not see it yet."""
        with self._transaction():
            self._connection.execute(create(table))

    def hold(
        self,
        epoch: int,
        holdings: Sequence[Holding],
        progress: Mapping[str, Mapping[StreamPartition, Progress]],
    ) -> None:
        """Enter new versions and, for new units, where they begin to read."""
        with self._transaction():
            self._check_epoch(epoch)
            for unit, positions in progress.items():
                self._connection.execute(
                    "INSERT INTO headrace.units VALUES (?, 0) ON CONFLICT DO NOTHING", [unit]
                )
                self._set_progress(unit, positions)
            for holding in holdings:
                self._connection.execute(
                    "DELETE FROM headrace.holdings WHERE kind = ? AND name = ? AND version = ?",
                    list(holding.owner),
                )
                self._insert("headrace.holdings", [list(vars(holding).values())])

    def journal(self, planned: PlannedTurn) -> None:
        """Note what a turn will read, before it reads. EngineFenced."""
        ranges = [
            [entry.stream, *entry.range.partition, entry.range.start, entry.range.end]
            for entry in planned.ranges
        ]
        with self._transaction():
            self._check_turn(planned)
            self._connection.execute(
                "INSERT OR REPLACE INTO headrace.journal VALUES (?, ?, ?, ?)",
                [planned.unit, planned.turn, planned.epoch, json.dumps(ranges)],
            )

    def journalled(self, unit: str) -> PlannedTurn | None:
        """Return the turn that a unit had planned and not committed."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT turn, epoch, ranges FROM headrace.journal WHERE unit = ?", [unit]
            ).fetchall()
        if not rows:
            return None
        row = rows[0]
        ranges = tuple(
            StreamRange(stream, Range(Partition(topic, partition), start, end))
            for stream, topic, partition, start, end in json.loads(row[2])
        )
        return PlannedTurn(unit, row[0], row[1], ranges)

    def stage(self, table: Table, delta: pa.Table) -> pa.Table:
        """Bring a delta into the table's columns and types; nobody can see it yet."""
        schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
        return delta.select(schema.names).cast(schema)

    def commit(self, commit: Commit) -> None:
        """Make a turn visible. EngineFenced, MergeFailed (names the view), DiskFull."""
        check_laws(commit.counters)
        planned = commit.planned
        with self._transaction():
            self._check_turn(planned)
            for aside in commit.set_aside:
                self._set_aside(planned.unit, aside)
            for table, deltas in commit.deltas.items():
                for delta in deltas:
                    self._merge(table, delta)
            self._set_progress(planned.unit, commit.progress)
            self._insert(
                "headrace.counters",
                [
                    [*owner, counter, value]
                    for owner, counters in commit.counters.items()
                    for counter, value in counters.items()
                ],
                "ON CONFLICT DO UPDATE SET value = value + excluded.value",
            )
            self._add_outbox(commit.outbox)
            self._insert(
                "headrace.seeds",
                [
                    [s.stream, s.version, s.partition, s.progress.offset, s.progress.clock_us]
                    for s in commit.seeds
                ],
            )
            self._note_turn(commit)
            faults.reach("before_commit")
        faults.reach("after_commit")

    def _note_turn(self, commit: Commit) -> None:
        planned, report = commit.planned, commit.report
        self._connection.execute(
            "INSERT INTO headrace.turns VALUES (?, ?, ?, now(), ?, ?, ?, ?, ?)",
            [
                planned.unit,
                planned.turn,
                planned.epoch,
                report.gear,
                report.records,
                report.late,
                report.dead,
                json.dumps(dict(report.milliseconds)),
            ],
        )
        if planned.turn % 100 == 0:
            self._connection.execute(
                "DELETE FROM headrace.turns WHERE unit = ? AND turn <= ?",
                [planned.unit, planned.turn - KEPT_TURNS],
            )
        self._connection.execute(
            "UPDATE headrace.units SET turn = ? WHERE unit = ?", [planned.turn, planned.unit]
        )
        self._connection.execute("DELETE FROM headrace.journal WHERE unit = ?", [planned.unit])

    def _merge(self, table: Table, delta: pa.Table) -> None:
        self._connection.register("__delta", delta)
        try:
            self._connection.execute(merge(table, "__delta"))
        except duckdb.DataError as error:
            raise MergeFailed(
                f"view {table.view}: its delta does not merge: {error}", view=table.view
            ) from error
        finally:
            self._connection.unregister("__delta")

    def _add_outbox(self, entries: Sequence[OutboxEntry]) -> None:
        for entry in entries:
            row = pa.table(
                {
                    "topic": [entry.topic],
                    "source_topic": [entry.source.partition.topic],
                    "source_partition": [entry.source.partition.number],
                    "producer_id": [entry.producer_id],
                    "offsets": pa.ListArray.from_arrays([0, len(entry.offsets)], entry.offsets),
                    "reasons": pa.ListArray.from_arrays([0, len(entry.reasons)], entry.reasons),
                }
            )
            self._connection.register("__entry", row)
            self._connection.execute(
                "INSERT INTO headrace.outbox SELECT nextval('headrace.outbox_numbers'), * "
                "FROM __entry"
            )
            self._connection.unregister("__entry")

    def _set_aside(self, unit: str, aside: SetAside) -> None:
        own = f"view:{aside.view}@{aside.version}"
        if unit != own:
            self._connection.execute(
                "INSERT INTO headrace.units VALUES (?, 0) ON CONFLICT DO NOTHING", [own]
            )
            self._connection.execute(
                "INSERT INTO headrace.progress SELECT ?, stream, partition, next_offset, clock_us "
                "FROM headrace.progress WHERE unit = ? AND stream = (SELECT stream FROM "
                "headrace.holdings WHERE kind = 'view' AND name = ? AND version = ?)",
                [own, unit, aside.view, aside.version],
            )
        self._connection.execute(
            "UPDATE headrace.holdings SET unit = ?, state = ?, reason = ? "
            "WHERE kind = 'view' AND name = ? AND version = ?",
            [own, aside.state, aside.reason, aside.view, aside.version],
        )

    def show(self, epoch: int, unit: str, tables: Sequence[Table]) -> None:
        """Give tables their public names; versions that a unit brings replace the older ones."""
        with self._transaction():
            self._check_epoch(epoch)
            if unit != MAIN:
                self._join_main(unit)
            for table in tables:
                self._connection.execute(show(table))

    def _join_main(self, unit: str) -> None:
        with self.open() as snapshot:
            brought = [holding for holding in snapshot.holdings() if holding.unit == unit]
            replaced = [
                old
                for old in snapshot.holdings()
                if any((old.kind, old.name) == (new.kind, new.name) for new in brought)
                and old not in brought
            ]
        self._drop(replaced)
        self._connection.execute(
            "INSERT OR REPLACE INTO headrace.progress SELECT ?, stream, partition, next_offset, "
            "clock_us FROM headrace.progress WHERE unit = ?",
            [MAIN, unit],
        )
        self._connection.execute(
            "UPDATE headrace.holdings SET unit = ?, state = ?, reason = '' WHERE unit = ?",
            [MAIN, HoldingState.LIVE, unit],
        )
        self._forget_units([unit])

    def drop(self, epoch: int, holdings: Sequence[Holding]) -> None:
        """Forget versions that no definition names any more, and their tables."""
        with self._transaction():
            self._check_epoch(epoch)
            self._drop(holdings)
            rows = self._connection.execute(
                "SELECT unit FROM headrace.units WHERE unit <> ? AND unit NOT IN "
                "(SELECT unit FROM headrace.holdings)",
                [MAIN],
            ).fetchall()
            self._forget_units([row[0] for row in rows])

    def _drop(self, holdings: Sequence[Holding]) -> None:
        for holding in holdings:
            for table in ("holdings", "counters"):
                self._connection.execute(
                    f"DELETE FROM headrace.{table} WHERE kind = ? AND name = ? AND version = ?",
                    list(holding.owner),
                )
            if holding.kind == "view":
                if not self._connection.execute(
                    "FROM headrace.holdings WHERE kind = 'view' AND name = ?", [holding.name]
                ).fetchall():
                    self._connection.execute(f"DROP VIEW IF EXISTS main.{quote(holding.name)}")
                name = physical(f"{holding.name}__{holding.version}")
                self._connection.execute(f"DROP TABLE IF EXISTS {name}")
            else:
                self._connection.execute(
                    "DELETE FROM headrace.seeds WHERE stream = ? AND version = ?",
                    [holding.name, holding.version],
                )
                self._connection.execute(
                    "DELETE FROM headrace.progress WHERE unit = ? AND stream = ?",
                    [holding.unit, holding.name],
                )

    def _forget_units(self, units: Sequence[str]) -> None:
        for unit in units:
            for table in ("progress", "units", "journal", "turns"):
                self._connection.execute(f"DELETE FROM headrace.{table} WHERE unit = ?", [unit])

    def published(self, numbers: Sequence[int]) -> None:
        """Forget outbox entries that are in the log."""
        with self._transaction():
            self._connection.execute(
                "DELETE FROM headrace.outbox WHERE list_contains(?, number)", [list(numbers)]
            )

    def seeds(self, stream: str, version: str) -> list[Seed]:
        """Return the saved clocks of a stream version, by partition and offset."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT partition, next_offset, clock_us FROM headrace.seeds "
                "WHERE stream = ? AND version = ? ORDER BY partition, next_offset",
                [stream, version],
            ).fetchall()
        return [Seed(stream, version, row[0], Progress(row[1], row[2])) for row in rows]

    def close(self) -> None:
        """Release the store."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            try:
                self._connection.execute("BEGIN")
                yield
                self._connection.execute("COMMIT")
            except BaseException as error:
                self._roll_back(error)
                if isinstance(error, duckdb.Error):
                    raise _translate(error) from error
                raise

    def _roll_back(self, cause: BaseException) -> None:
        try:
            self._connection.execute("ROLLBACK")
        except duckdb.Error as error:
            cause.add_note(f"and the transaction could not be rolled back: {error}")

    def _set_progress(self, unit: str, positions: Mapping[StreamPartition, Progress]) -> None:
        rows = [
            [unit, *key, place.offset, None if place.clock_us == NEVER else place.clock_us]
            for key, place in positions.items()
        ]
        self._insert(
            "headrace.progress",
            rows,
            "ON CONFLICT DO UPDATE SET next_offset = excluded.next_offset, "
            "clock_us = excluded.clock_us",
        )

    def _insert(self, table: str, rows: Sequence[Sequence[object]], conflict: str = "") -> None:
        if not rows:
            return
        marks = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
        values = [value for row in rows for value in row]
        self._connection.execute(f"INSERT INTO {table} VALUES {marks} {conflict}", values)

    def _value(self, sql: str, parameters: Sequence[object] = ()) -> int:
        rows = self._connection.execute(sql, list(parameters)).fetchall()
        return int(rows[0][0])

    def _check_epoch(self, epoch: int) -> None:
        newest = self._value("SELECT epoch FROM headrace.engine")
        if newest != epoch:
            raise EngineFenced(
                f"epoch {epoch} may not write any more: an engine of epoch {newest} took over. "
                f"Stop this one."
            )

    def _check_turn(self, planned: PlannedTurn) -> None:
        self._check_epoch(planned.epoch)
        last = self._value("SELECT turn FROM headrace.units WHERE unit = ?", [planned.unit])
        if last != planned.turn - 1:
            raise EngineFenced(
                f"unit {planned.unit}: turn {planned.turn} does not follow turn {last}, the last "
                f"one committed. Another engine turns this unit; stop one of them."
            )


def _translate(error: duckdb.Error) -> StoreError | DiskFull:
    text = str(error)
    if "No space left" in text or "Disk quota exceeded" in text or "max_temp_directory" in text:
        return DiskFull(
            f"the store's disk is full and the turn was not committed: {text}. Free some space "
            f"and run again: the turn is read from the log once more."
        )
    return StoreError(f"the store failed: {text}")
