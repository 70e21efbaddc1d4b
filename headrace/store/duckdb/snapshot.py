"""One committed state of a DuckDB store, for reading: a read-only transaction.

The first thing that is read from it is tried again a few times if a commit under way leaves it no
memory. DuckDB ends the transaction in that case, so what is read then may be a later state. What is
read afterwards has to be of the same state, and is not tried again.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any, BinaryIO, TypeAlias, TypeVar

import duckdb
import pyarrow as pa

from headrace.errors import StoreError, ViewNotFound
from headrace.ledger.entries import (
    MAIN,
    Counted,
    Counters,
    Holding,
    HoldingState,
    Manifest,
    OutboxEntry,
    Owner,
    Progress,
    StreamPartition,
    TurnReport,
    WrittenBy,
)
from headrace.ledger.following import Page, SinkState, Token
from headrace.log.base import Partition, Range
from headrace.operators.state import Run, Shards
from headrace.plan.stages import Operator
from headrace.plan.tables import ERRORS, Table
from headrace.scratch import parse
from headrace.store.asking import Found, Selection, Standing
from headrace.store.base import (
    MAX_ROWS,
    MAX_SECONDS,
    WRITTEN_ROWS,
    KeptChanges,
    PublicRows,
    PublicTable,
    SinkChanges,
)
from headrace.store.duckdb.asked import find_rows, select, stream_rows
from headrace.store.duckdb.changes.following import read_leases, read_sinks
from headrace.store.duckdb.changes.keeping import ChangeKeeping
from headrace.store.duckdb.changes.kept import count_kept, count_waiting
from headrace.store.duckdb.changes.layout import rows_view
from headrace.store.duckdb.changes.publishing import Asking, net_changes
from headrace.store.duckdb.changes.reading import (
    Reading,
    head_token,
    keyed_columns,
    page_after,
    rows_of,
)
from headrace.store.duckdb.changes.recent import RecentChanges
from headrace.store.duckdb.changes.shown import ShownVersion, read_shown, version_at
from headrace.store.duckdb.commit import SUM_COUNTERS
from headrace.store.duckdb.errors import lacks_memory, translated
from headrace.store.duckdb.exporting import write_export
from headrace.store.duckdb.file import PAUSES_SECONDS
from headrace.store.duckdb.public import least_bytes, open_rows, read_public
from headrace.store.duckdb.query import read_query
from headrace.store.duckdb.sizing import (
    count_errors,
    count_scattered,
    count_state,
    estimate_bytes,
)
from headrace.store.duckdb.standing import Looked, Standings, read_standing
from headrace.store.duckdb.tables.cutting import day_start
from headrace.store.duckdb.tables.names import errors_of, physical, quote
from headrace.store.duckdb.tables.placing import placing_of
from headrace.store.duckdb.tables.reading import shown_then
from headrace.store.duckdb.versions import CLOCK, read_clock
from headrace.store.duckdb.writing import WRITTEN_BY
from headrace.time.clocks import NEVER

__all__ = ["DuckDBSnapshot"]

T = TypeVar("T")
Asked: TypeAlias = Callable[[duckdb.DuckDBPyConnection], AbstractContextManager[None]]

_ENGINE = "SELECT store_id, commits FROM headrace.engine"
_BATCH_ROWS = 2_048  # of net changes, held in memory at once


class DuckDBSnapshot:
    """A read-only transaction on its own connection; `asked` holds while it answers others."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        asked: Asked = lambda _: nullcontext(),
        standings: Standings | None = None,
        keeping: ChangeKeeping | None = None,
        tables: Mapping[str, Table] | None = None,
    ) -> None:
        self._connection = connection
        self._tables = tables or {}  # that readers see, by view, as far as is known
        self._keeping = keeping
        self._recent = RecentChanges() if keeping is None else keeping.recent
        # By topic: further than the ledger says.
        self._told = {} if keeping is None else keeping.unwritten
        self._asked = asked
        self._standings = standings or Standings()
        self._changes = self._standings.changes
        self._is_begun = True
        self._is_read = True
        self._engine: tuple[str, int] | None = None  # the store's id and the number of commits

    def begin(self) -> None:
        """Begin the transaction that all reads are of. StoreError."""
        self._is_begun = self._is_read = False
        self._read(lambda: None)
        self._is_read = False

    def _begin(self) -> None:
        self._connection.execute("BEGIN TRANSACTION READ ONLY")
        # A transaction of DuckDB sees the state of its first read, not of its beginning.
        [self._engine] = self._connection.execute(parse(_ENGINE)).fetchall()
        self._is_begun = True

    def _roll_back(self) -> None:
        with suppress(duckdb.TransactionException):  # it did not begin
            self._connection.execute("ROLLBACK")
        self._is_begun = self._is_read = False

    def query(
        self, sql: str, *, max_rows: int | None = MAX_ROWS, max_seconds: float = MAX_SECONDS
    ) -> pa.Table:
        """Answer one reading statement. QueryRefused: not one, or past its limits."""
        self._is_read = True
        with self._asked(self._connection):
            return read_query(self._connection, sql, max_rows=max_rows, max_seconds=max_seconds)

    def standing(self, view: str) -> Standing:
        """Return where a view stands. ViewNotFound: readers see none of that name."""
        return self._look(view).standing

    def _look(self, view: str) -> Looked:
        found = self._standings.get(view, self.commits(), self._changes)
        if found is None:
            found = read_standing(self._fetch, view)
            self._standings.keep(found, self._changes)
        return found

    def rows(
        self,
        view: str,
        asked: Selection,
        *,
        errors: bool = False,
        max_bytes: int,
        max_seconds: float = MAX_SECONDS,
    ) -> Found:
        """Return rows that readers see of a view, or of its errors. QueryRefused, ViewNotFound."""
        source, known = self._source(view)
        if errors:
            known = {}
            source = errors_of(view)
            names = "SELECT 1 FROM duckdb_views() WHERE schema_name = 'main' AND view_name = ?"
            if not self._fetch(names, [f"{view}.{ERRORS}"]):
                raise ViewNotFound(
                    f"the view {view} has no errors: its rows are records, and one on which an "
                    f"expression fails is in the topic {view}.dead"
                )
        with self._asked(self._connection):
            return find_rows(
                self._connection,
                source,
                asked,
                max_bytes=max_bytes,
                max_seconds=max_seconds,
                known=known,
            )

    def _source(self, view: str) -> tuple[str, Mapping[str, object]]:
        """Return what the rows of a view are read from, and its parameters.

        The public name says the same; but to look up W in a subquery takes DuckDB 1 ms more.
        """
        table, standing = self._tables.get(view), self.standing(view)
        if table is None or table.version != standing.version:
            return f"main.{quote(view)}", {}
        shown = shown_then(table)
        return f"({shown.select})", shown.parameters(standing.watermark_us)

    def keyed_batches(
        self, view: str, asked: Selection, *, max_seconds: float
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of a view with `_closed` and `_key`, in batches. QueryRefused."""
        relation = self.standing(view).relation
        columns = ["_closed", *keyed_columns(relation, asked.columns)]
        names = {each.name: f"c{at}" for at, each in enumerate(relation.columns)}
        statement = select(rows_view(view), columns, asked, names)
        with self._asked(self._connection):
            yield from stream_rows(self._connection, statement, max_seconds=max_seconds)

    def public_tables(self) -> tuple[PublicTable, ...]:
        """Return all relations that readers see."""
        return read_public(self._fetch)

    def least_bytes(self, table: PublicTable, columns: Sequence[str], *, most: int) -> int:
        """Return how many bytes columns of a relation take at least; 0: no more than `most`."""
        return least_bytes(self._fetch, table, columns, most)

    @contextmanager
    def public_rows(self, table: str, columns: Sequence[str]) -> Iterator[PublicRows]:
        """Read columns of a relation that readers see, in batches."""
        self._is_read = True
        with self._asked(self._connection):
            yield open_rows(self._connection, table, columns)

    def last_end(self, table: Table) -> int | None:
        """Return when the last window of a table ends, in microseconds; None: it has none."""
        last_end = placing_of(table).last_end()
        if last_end is None:
            return None
        found = self._fetch(f"SELECT {last_end} FROM {physical(table.name)}")[0][0]
        return None if found is None else int(found)

    def day_starts(self, zone: str, days: int) -> pa.ChunkedArray:
        """Return when the days of a time zone begin, from 1970-01-01, in microseconds."""
        begin = f"epoch_us({day_start(zone, 'day')})"
        return self._arrow(f"SELECT {begin} AS begin FROM range({days}) r(day) ORDER BY day")[0]

    def export(self, sink: BinaryIO, table: str | None = None) -> None:
        """Write the ledger, or the rows of a physical table, for another process to compare."""
        self._is_read = True
        with self._asked(self._connection):
            write_export(self._connection, sink, table)

    def states(self, table: Table) -> pa.Table:
        """Return the rows of a physical table: keys and merged states."""
        return self._arrow(f"FROM {physical(table.name)}")

    def holdings(self) -> list[Holding]:
        """Return every version and the unit that maintains it."""
        rows = self._fetch(
            "SELECT kind, name, version, unit, inputs, fingerprint, forms, text, state, reason, "
            "evaluated FROM headrace.holdings ORDER BY kind, name, unit"
        )
        found = []
        for kind, name, version, unit, inputs, fingerprint, forms, text, state, *rest in rows:
            reason, evaluated = rest
            held = (kind, name, version, unit, tuple(inputs), fingerprint, tuple(forms), text)
            found.append(Holding(*held, HoldingState(state), reason, tuple(evaluated)))
        return found

    def progress(self, unit: str) -> dict[StreamPartition, Progress]:
        """Return how far a unit has read."""
        rows = self._fetch(
            f"SELECT stream, partition, next_offset, {CLOCK} FROM headrace.progress "
            "WHERE unit = ? ORDER BY stream, partition",
            [unit],
        )
        return {
            StreamPartition(stream, partition): Progress(offset, read_clock(clock))
            for stream, partition, offset, *clock in rows
        }

    def counters(self) -> dict[Counted, Counters]:
        """Return the counters of every version, by input."""
        counters: dict[Counted, dict[str, int]] = {}
        for *owner, input, counter, value in self._fetch(SUM_COUNTERS):
            counters.setdefault(Counted(Owner(*owner), input), {})[counter] = value
        return dict(counters)

    def watermarks(self) -> dict[Owner, int]:
        """Return W of every view; NEVER is -infinity."""
        rows = self._fetch(
            "SELECT h.name, h.version, w.watermark_us FROM headrace.holdings h "
            "LEFT JOIN headrace.view_watermarks w ON w.view = h.name AND w.version = h.version "
            "WHERE h.kind = 'view'"
        )
        return {
            Owner("view", name, version): NEVER if watermark_us is None else watermark_us
            for name, version, watermark_us in rows
        }

    def commits(self) -> int:
        """Return how many commits the store has seen: the number of this one."""
        return self._known()[1]

    def _known(self) -> tuple[str, int]:
        if self._engine is None:
            [self._engine] = self._fetch(_ENGINE)
        self._is_read = True
        return self._engine

    def turns(self, unit: str, *, last: int = 1) -> list[TurnReport]:
        """Return the last turns of a unit, newest first."""
        rows = self._fetch(
            "SELECT unit, turn, gear, records, late, dead, milliseconds FROM headrace.turns "
            "WHERE unit = ? ORDER BY turn DESC LIMIT ?",
            [unit, last],
        )
        return [TurnReport(*(*row[:6], json.loads(row[6]))) for row in rows]

    def units(self) -> dict[str, int]:
        """Return every unit and its last committed turn."""
        return dict(self._fetch("SELECT unit, turn FROM headrace.units ORDER BY unit"))

    def time_offset(self, unit: str) -> int:
        """Return how far a unit has read the topic of markers."""
        found = self._fetch("SELECT time_offset FROM headrace.units WHERE unit = ?", [unit])
        return int(found[0][0])

    def void_markers(self) -> int:
        """Return how many records of the topic of markers the main unit found void."""
        found = self._fetch("SELECT void_markers FROM headrace.units WHERE unit = ?", [MAIN])
        return int(found[0][0])

    def outbox(self) -> list[tuple[int, OutboxEntry]]:
        """Return what is to be published, in order, with its number."""
        rows = self._arrow("FROM headrace.outbox ORDER BY number")
        entries = []
        for row in range(rows.num_rows):
            number, topic, source_topic, source_partition, producer_id = (
                rows.column(i)[row].as_py() for i in range(5)
            )
            offsets, reasons = rows.column(5)[row].values, rows.column(6)[row].values
            partition = Partition(source_topic, source_partition)
            source = Range(partition, offsets[0].as_py(), offsets[-1].as_py() + 1)
            entries.append((number, OutboxEntry(topic, source, producer_id, offsets, reasons)))
        return entries

    def outbox_records(self) -> int:
        """Return how many records wait to be published."""
        rows = self._fetch("SELECT coalesce(sum(len(offsets)), 0) FROM headrace.outbox")
        return int(rows[0][0])

    def store_id(self) -> str:
        """Return what tells this store from every other one, also one made in its place."""
        return self._known()[0]

    def sinks(self) -> list[SinkState]:
        """Return every sink and how far it is."""
        found = []
        for state in read_sinks(self._fetch):
            shown = self._shown_of(state.sink.view)
            told = max(state.told, self._told.get(state.sink.topic, 0))
            at = version_at(shown, told)
            version = "" if at is None else shown[at].version
            found.append(replace(state, told=told, version=version))
        return found

    def sink_changes(self, state: SinkState) -> Iterator[SinkChanges]:
        """Yield what a sink is to be told up to this commit, in order."""
        head = self.commits() if state.until is None else state.until
        shown = self._shown_of(state.sink.view)
        asking = Asking(self._fetch, self._few, self._batches, self._recent)
        return net_changes(asking, state, shown, head)

    def _shown_of(self, view: str) -> Sequence[ShownVersion]:
        """Return the versions of a view, maybe some that nobody needs and that are gone."""
        try:
            return self._look(view).shown
        except ViewNotFound:
            return ()

    def _few(self, sql: str, values: Sequence[object]) -> pa.Table:
        return self._read(lambda: self._connection.execute(parse(sql), values).to_arrow_table())

    def _batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        with translated():
            yield from self._connection.sql(sql).to_arrow_reader(_BATCH_ROWS)

    def shown(self) -> dict[str, str]:
        """Return the version that readers see of every view."""
        return dict(self._fetch("SELECT view, version FROM headrace.shown ORDER BY since"))

    def waiting_changes(self) -> dict[str, int]:
        """Return how many changes wait for each sink, by its topic."""
        return count_waiting(self._fetch, self.sinks())

    def keyed_rows(self, view: str) -> pa.Table:
        """Return all rows of a view: `_closed`, `_key`, and its columns. TokenRefused."""
        head_token(self._fetch, view)
        relation = read_shown(self._fetch, view)[-1].relation
        return self._arrow(f"SELECT _closed, {rows_of(relation)} FROM {rows_view(view)}")

    def token(self, view: str) -> Token:
        """Return the token of this commit for a view. TokenRefused: there is no such view."""
        return head_token(self._fetch, view)

    def changes(
        self, view: str, after: Token, *, max_rows: int, max_bytes: int | None = None
    ) -> Page:
        """Return what followed a token, at most so many rows. TokenRefused, TokenTooOld."""
        page = page_after(
            Reading(self._fetch, self._few, self._recent, self._shown_of(view)),
            view,
            after,
            max_rows=max_rows,
            max_bytes=max_bytes,
        )
        if not page.at_head:
            return page
        standing = self.standing(view)
        return replace(page, position=standing.position, watermark_us=standing.watermark_us)

    def leases(self) -> dict[str, str]:
        """Return the view that each reader with a lease follows."""
        return {lease: view for lease, (view, _) in read_leases(self._fetch).items()}

    def kept_changes(self) -> dict[str, KeptChanges]:
        """Return what is kept of the changes of every view that is followed."""
        keeping = self._keeping
        held = (lambda _: 0) if keeping is None else keeping.held_bytes
        return count_kept(self._fetch, self.sinks(), held)

    def _next_rows(self, table: str, size: str, max_rows: int, max_bytes: int) -> pa.Table:
        """Return the next rows of a table that wait, by their numbers."""
        return self._read(lambda: self._find_next(table, size, max_rows, max_bytes))

    def _find_next(self, table: str, size: str, max_rows: int, max_bytes: int) -> pa.Table:
        # By a literal range of numbers, so that the store skips the rows that are not next.
        first = self._fetch(f"SELECT min(number) FROM headrace.{table}")[0][0]
        if first is None:  # in most turns; the query below takes DuckDB 3 ms to plan
            return self._arrow(f"FROM headrace.{table} LIMIT 0")
        near = f"FROM headrace.{table} WHERE number BETWEEN {first} AND {first + max_rows - 1}"
        sizes = f"SELECT number, {size} AS size {near}"
        before = f"SELECT number, sum(size) OVER (ORDER BY number) - size AS before FROM ({sizes})"
        last = f"SELECT max(number) FROM ({before}) WHERE before < {max_bytes}"
        return self._arrow(f"{near} AND number <= ({last}) ORDER BY number")

    def written_rows(self, *, max_rows: int, max_bytes: int) -> pa.Table:
        """Return the next rows of written streams to be published, in order, as WRITTEN_ROWS."""
        size = "coalesce(octet_length(key), 0) + strlen(value)"
        found = self._next_rows("written_rows", size, max_rows, max_bytes)
        return found.cast(WRITTEN_ROWS)

    def written_count(self) -> int:
        """Return how many rows of written streams wait to be published."""
        return int(self._fetch("SELECT count(*) FROM headrace.written_rows")[0][0])

    def written_by(self) -> list[WrittenBy]:
        """Return which version writes the rows of every source partition, and how far it is."""
        return [WrittenBy(*row) for row in self._fetch(WRITTEN_BY)]

    def manifests(self) -> dict[tuple[str, Operator], Manifest]:
        """Return the runs of state by unit and operator."""
        found: dict[tuple[str, Operator], Manifest] = {}
        for unit, kind, stream, version, file, first, end, *rest in self._fetch(
            "FROM headrace.manifests ORDER BY unit, operator, stream, file, first_shard"
        ):
            key = (unit, Operator(kind, stream, version))
            found[key] = (*found.get(key, ()), Run(file, Shards(first, end), *rest))
        return found

    def state_rows(self) -> dict[str, int]:
        """Return how many rows every version has in its physical tables, items too."""
        return count_state(self._fetch)

    def error_rows(self, tables: Collection[str]) -> dict[str, int]:
        """Return how many rows the errors have of some versions, by the names of their tables."""
        return count_errors(self._fetch, tables)

    def scattered_keys(self, tables: Collection[str]) -> dict[str, int]:
        """Return of some tables how many keys have changes in several partitions, by table."""
        return count_scattered(self._fetch, tables)

    def state_bytes(self) -> dict[str, int]:
        """Return about how many bytes the rows hold, before the store compresses them."""
        return estimate_bytes(self._fetch)

    def _fetch(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._read(lambda: self._connection.execute(parse(sql), list(parameters)).fetchall())

    def _arrow(self, sql: str) -> pa.Table:
        return self._read(lambda: self._connection.sql(sql).to_arrow_table())

    def _read(self, work: Callable[[], T]) -> T:
        """Read something, and again for want of memory if nothing was read before. StoreError."""
        is_first, is_again = not self._is_read, False
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                with translated():
                    if is_again:  # not before the pause: there may be no memory for this either
                        self._roll_back()
                    if not self._is_begun:
                        self._begin()
                    found = work()
            except StoreError as error:
                if pause_seconds is None or not is_first or not lacks_memory(error):
                    raise
                is_again = True
                time.sleep(pause_seconds)
            else:
                self._is_read = True
                return found
        raise AssertionError
