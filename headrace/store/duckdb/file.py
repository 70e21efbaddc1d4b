"""One DuckDB file: opened, locked down, written in transactions, read through cursors.

Promises:
- One process has the file at a time (StoreBusy), and only its owner can read it.
- A transaction is committed whole or rolled back, whatever is raised within.
- Files, network and settings are out of reach of every statement once the file is open.
- A database that DuckDB gives up in a commit is opened anew, and the commit is tried again.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from headrace.errors import StoreBusy, StoreError, Unreachable
from headrace.scratch import Feed, parse
from headrace.store.duckdb.errors import is_given_up, lacks_memory, translate, translated
from headrace.store.duckdb.outside import CLOSE_SECONDS, OutsideQueries

__all__ = ["PAUSES_SECONDS", "DuckDBFile", "Parameters"]

MEMORY_LIMIT = "2GB"  # of DuckDB's own buffers; past it, queries spill to disk or fail
SPILL_LIMIT = "8GB"  # of temporary files: a query from outside must not fill the log's disk
MAX_FEEDS = 1_024  # names that stay registered

#: Before what lacked memory is tried again: a transaction that queries left none to, or a read of
#: the engine's own that a transaction left none to.
PAUSES_SECONDS = (0.1, 0.5, 1.0)

#: By position or, where a statement names them ($low), by name.
Parameters = Sequence[object] | Mapping[str, object]

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": MEMORY_LIMIT,
    "max_temp_directory_size": SPILL_LIMIT,
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def _may_pass(error: StoreError) -> bool:
    """Whether a transaction that failed may succeed when it is tried again."""
    return lacks_memory(error) or is_given_up(error)


class DuckDBFile:
    """The file at `path`. StoreBusy, Unreachable (read only and not there), StoreError, DiskFull.

    `_root` only makes cursors, under a lock of its own: DuckDB refuses a connection that is busy
    with another call, and readers must not wait for a commit. `_writer` is for one thread at a
    time, within `transaction`.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._writer_lock = threading.RLock()
        self._cursor_lock = threading.Lock()
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
        self._feeds: dict[tuple[str, pa.Schema], Feed] = {}
        self.outside = OutsideQueries()
        self._is_locked_down = False
        self._check_path(read_only)
        self._open(read_only)

    def _open(self, read_only: bool) -> None:
        self._root = self._connect(read_only)
        try:
            with translated():
                # GLOBAL: a cursor is a session of its own and would have the machine's zone.
                self._root.execute("SET GLOBAL TimeZone = 'UTC'")
                self._root.execute("SET python_enable_replacements = false")
                self._writer = self._root.cursor()
            if not read_only:
                os.chmod(self.path, 0o600)
        except BaseException as error:
            self._root.close()
            # Within one process DuckDB shares the file, locked down by whoever opened it first.
            if isinstance(error.__cause__, duckdb.InvalidInputException):
                raise self._busy() from error
            raise

    def _check_path(self, read_only: bool) -> None:
        if self.path.stem == "headrace":
            raise StoreError(
                f"{self.path}: DuckDB names a database after its file, and `headrace` is the "
                f"ledger's name within it. Call the file store.duckdb."
            )
        if read_only:
            if not self.path.exists():
                raise Unreachable(f"{self.path}: no store yet: run `headrace run`")
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"{self.path}: its folder cannot be made: {error}") from error

    def _connect(self, read_only: bool) -> duckdb.DuckDBPyConnection:
        try:
            return duckdb.connect(str(self.path), read_only=read_only, config=dict(_CONFIG))
        except duckdb.Error as error:
            if isinstance(error, duckdb.ConnectionException) or "Could not set lock" in str(error):
                raise self._busy() from error
            raise translate(error) from error

    def _busy(self) -> StoreBusy:
        return StoreBusy(
            f"{self.path}: another process, or another part of this one, has the store open. "
            f"While an engine runs, ask it: `headrace sql`, `headrace status`."
        )

    def lock_down(self) -> None:
        """Shut out files, network and settings for as long as the file is open."""
        with self._writer_lock, translated():
            self._writer.execute("SET enable_external_access = false")
            self._writer.execute("SET lock_configuration = true")
            self._is_locked_down = True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is written within, or nothing of it. StoreError, DiskFull."""
        with self._writer_lock:
            try:
                self._writer.execute("BEGIN")
                yield
                self._writer.execute("COMMIT")
            except BaseException as error:
                failure = self._roll_back()
                if failure is not None and isinstance(error, Exception):
                    raise translate(failure) from failure
                if isinstance(error, duckdb.Error):
                    raise translate(error) from error
                raise

    def _roll_back(self) -> duckdb.Error | None:
        """Roll a transaction back; return why it cannot be: then the database is to be given up."""
        self._feeds.clear()  # names that were registered within the transaction go with it
        with ExitStack() as stack:
            for pause_seconds in (*PAUSES_SECONDS, None):
                try:
                    self._writer.execute("ROLLBACK")
                except (duckdb.TransactionException, duckdb.ConnectionException):
                    break  # it is closed, or a COMMIT that failed left nothing to roll back
                except duckdb.FatalException:
                    break  # the database is given up, and the transaction with it
                except duckdb.Error as error:
                    # For want of memory too; and what is not rolled back fails all that follows.
                    if pause_seconds is None:
                        return duckdb.FatalException(f"a transaction is not rolled back: {error}")
                    stack.enter_context(self.outside.held_off())
                    self.outside.end()
                    time.sleep(pause_seconds)
                else:
                    break
        return None

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a session of its own to one reader; `close` ends what it is doing."""
        with self._cursor_lock, translated():
            cursor = self._root.cursor()
            self._cursors.add(cursor)
        try:
            yield cursor
        finally:
            with self._cursor_lock:
                self._cursors.discard(cursor)
                cursor.close()

    def write_first(self, work: Callable[[], None]) -> None:
        """Run `work` in a transaction, before any query from outside. StoreError, DiskFull.

        They share its memory. When that does not suffice they are ended, others wait, and `work`
        runs again. One may have ended a moment ago, so it does so once where there is none, too. If
        not even the rollback has memory, DuckDB gives the database up. Then it is opened anew, and
        `work` has to look whether it was committed.
        """
        try:
            with self.transaction():
                work()
        except StoreError as error:
            if not _may_pass(error):
                raise
            with self.outside.held_off():
                self._write_again(work, error)

    def _write_again(self, work: Callable[[], None], error: StoreError) -> None:
        """Run `work` in a transaction after it failed."""
        were_asked = True
        for pause_seconds in PAUSES_SECONDS:
            if is_given_up(error):
                self._open_anew()
                are_asked = True
            else:
                are_asked = self.outside.end()
                if not (are_asked or were_asked):
                    break
            were_asked = are_asked
            time.sleep(pause_seconds)  # DuckDB gives memory back a little later
            try:
                with self.transaction():
                    work()
            except StoreError as failure:
                if not _may_pass(failure):
                    raise
                error = failure
            else:
                return
        raise error

    def _open_anew(self) -> None:
        """Open the database that DuckDB gave up. StoreBusy: a reader does not end.

        All that was committed is in the file and its write-ahead log.
        """
        with self._writer_lock, self.outside.let_go():
            self._try_until_done(self._opened_anew, "so the store cannot be opened anew")

    def _opened_anew(self) -> bool:
        with self._cursor_lock:
            if self._cursors:  # DuckDB would open the database that they hold
                for cursor in self._cursors:
                    cursor.interrupt()
                return False
            self._feeds.clear()
            self._writer.close()
            self._root.close()
            self._open(read_only=False)
            if self._is_locked_down:
                self.lock_down()
            return True

    def _try_until_done(self, work: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + CLOSE_SECONDS
        while not work():
            if time.monotonic() > deadline:
                raise StoreBusy(f"{self.path}: a query does not end, {otherwise}")
            time.sleep(0.01)

    # Those below are for the writer, within a transaction.

    def run(self, sql: str, parameters: Parameters = ()) -> None:
        """Run one statement."""
        self._execute(sql, parameters)

    def rows(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Return all rows of one statement."""
        with self._writer_lock, translated():
            return self._execute(sql, parameters).fetchall()

    def _execute(self, sql: str, parameters: Parameters) -> duckdb.DuckDBPyConnection:
        # Where a statement has parameters, its text is the same in many turns.
        if not parameters:
            return self._writer.execute(sql)
        # DuckDB takes no other mapping than a dictionary.
        given = dict(parameters) if isinstance(parameters, Mapping) else parameters
        return self._writer.execute(parse(sql), given)

    def table(self, sql: str) -> pa.Table:
        """Return all rows of one statement as an Arrow table."""
        with self._writer_lock, translated():
            return self._writer.sql(sql).to_arrow_table()

    def few(self, sql: str, parameters: Parameters = ()) -> pa.Table:
        """Return the rows of one statement as an Arrow table, where there are few.

        `table` is for many: it plans the statement twice and copies the rows once less.
        """
        with self._writer_lock, translated():
            return self._execute(sql, parameters).to_arrow_table()

    def insert(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        """Insert rows, all in one statement."""
        if rows:
            # As columns: half the time of as many VALUES.
            columns = [list(column) for column in zip(*rows, strict=True)]
            marks = ", ".join(["unnest(?)"] * len(columns))
            self.run(f"INSERT INTO {table} SELECT {marks}", columns)

    def run_again(self, sql: str) -> None:
        """Run one statement without parameters whose text is the same in many turns."""
        self._writer.execute(parse(sql))

    @contextmanager
    def registered(self, name: str, data: pa.Table) -> Iterator[str]:
        """Let statements within read an Arrow table; yields its name, the same for one schema."""
        key = (name, data.schema)
        if key not in self._feeds:
            if len(self._feeds) >= MAX_FEEDS:  # their names are given again, one by one
                self._feeds.clear()
            self._feeds[key] = Feed(f"{name}_{len(self._feeds)}", data)
            self._writer.register(self._feeds[key].name, self._feeds[key])
        feed = self._feeds[key]
        feed.table = data
        try:
            yield feed.name
        finally:
            feed.table = data.slice(0, 0)

    def close(self) -> None:
        """Wait for the writer, end every query under way, and release the file. StoreBusy."""
        with self._writer_lock:
            self._try_until_done(self._closed, "so the store stays open")

    def _closed(self) -> bool:
        with self._cursor_lock:
            for cursor in self._cursors:
                cursor.interrupt()
            try:
                self._writer.close()
                self._root.close()
            except duckdb.ResourceInUseException:
                return False
            return True
