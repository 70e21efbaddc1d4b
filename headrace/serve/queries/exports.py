"""Hand out columns of tables as files of Arrow, all from one committed state.

Promises:
- The tables of one query are of one commit. No file is larger than the limit says, and the whole
  of a query neither: QueryTooLarge, before anything is written where the rows alone show it.
- One export is made at a time, so that readers take the store at most once.
- Files have no names. The memory is free as soon as neither the engine nor a child has them open,
  also after a crash of either.
What was exported is kept for others who ask for it at the same commit, for some seconds.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import pyarrow as pa

from headrace.errors import QueryRefused, QueryTooLarge
from headrace.serve.queries.positions import Position, read_positions
from headrace.store.base import PublicTable, Snapshot, Store

__all__ = ["Exports", "Handed", "Known", "TablesChanged"]

KEPT_SECONDS = 10.0  # that a file is kept after the last query that had it
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - no file of ours has a name there

Needs = Mapping[str, Sequence[str]]  # columns by table


class TablesChanged(Exception):
    """The tables are not those any more that a query was planned with."""


@dataclass(frozen=True)
class Known:
    """What readers can see at a commit: tables, and the positions of views.

    `shown` are the versions of views that the tables are; others would be other tables.
    """

    commit: int
    shown: Mapping[str, str]
    tables: tuple[PublicTable, ...]
    positions: Mapping[str, Position]


@dataclass
class _File:
    """Columns of a table at a commit. `used` is when a query had it last."""

    table: str
    columns: frozenset[str]
    file: BinaryIO
    bytes: int
    used: float
    readers: int = 0


@dataclass(frozen=True)
class Handed:
    """Files of the tables of one query, and what was known at their commit."""

    known: Known
    files: Mapping[str, _File]

    def descriptors(self) -> list[int]:
        """Return the open files, in the order of the tables."""
        return [each.file.fileno() for each in self.files.values()]


class Exports:
    """Exports of a store. `most_bytes` is for the tables of one query, and for what is kept."""

    def __init__(
        self,
        store: Store,
        *,
        most_bytes: int,
        folder: Path,
        shared: Path = SHARED_MEMORY,
        kept_seconds: float = KEPT_SECONDS,
    ) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self._folder = folder
        self._shared = shared
        self._kept_seconds = kept_seconds
        self._exporting = threading.Lock()
        self._sizes: dict[str, int] = {}  # of the last export of each table
        self._lock = threading.Lock()  # of what follows
        self._known: Known | None = None
        self._kept: list[_File] = []  # all of the commit of `_known`

    def known(self, *, fresh: bool = False) -> Known:
        """Return what readers can see: now if `fresh`, else at the last look. StoreError."""
        with self._lock:
            known = self._known
        if known is not None and not fresh:
            return known
        with self._store.open() as snapshot:
            return self._look(snapshot)

    def _look(self, snapshot: Snapshot) -> Known:
        commit, shown = snapshot.commits(), snapshot.shown()
        with self._lock:
            before = self._known
        is_same = before is not None and before.shown == shown
        if before is not None and is_same and before.commit == commit:
            return before
        tables = before.tables if before is not None and is_same else snapshot.public_tables()
        known = Known(commit, shown, tables, read_positions(snapshot, shown))
        with self._lock:
            if self._known is None or self._known.commit <= commit:
                self._known = known
                self._drop(self._kept)
        return known

    def hand_out(
        self,
        needs: Needs,
        tables: Sequence[PublicTable],
        *,
        deadline: float,
        cancelled: Callable[[], bool],
    ) -> Handed:
        """Return files with columns of some tables; `give_back` them.

        TablesChanged: the tables of the store are not these any more. QueryTooLarge. QueryRefused:
        no time is left. StoreError: a commit needed the memory.
        """
        check = _Check(deadline, cancelled)
        if not self._exporting.acquire(blocking=False):
            # What is kept already does not wait for the export of another query.
            with self._store.open() as snapshot:
                handed = self._find_all(self._check_tables(snapshot, tables), needs)
            if handed is not None:
                return handed
            while not self._exporting.acquire(timeout=0.1):
                check()
        try:
            with self._store.open() as snapshot:
                return self._export(snapshot, self._check_tables(snapshot, tables), needs, check)
        finally:
            self._exporting.release()

    def _check_tables(self, snapshot: Snapshot, tables: Sequence[PublicTable]) -> Known:
        known = self._look(snapshot)
        if known.tables != tuple(tables):
            raise TablesChanged
        return known

    def _find_all(self, known: Known, needs: Needs) -> Handed | None:
        """Return all that is needed if it is kept already."""
        files: dict[str, _File] = {}
        left = self._most_bytes
        for name, columns in needs.items():
            found = self._find(known, name, columns, left)
            if found is None:
                self.give_back(Handed(known, files))
                return None
            files[name] = found
            left -= found.bytes
        return Handed(known, files)

    def _export(self, snapshot: Snapshot, known: Known, needs: Needs, check: "_Check") -> Handed:
        by_name = {table.name: table for table in known.tables}
        files: dict[str, _File] = {}
        try:
            left = self._most_bytes
            for name, columns in needs.items():
                kept = self._find(known, name, columns, left)
                files[name] = kept or self._write(
                    snapshot, known, by_name[name], columns, left, check
                )
                left -= files[name].bytes
        except BaseException:
            self.give_back(Handed(known, files))
            raise
        return Handed(known, files)

    def _find(self, known: Known, table: str, columns: Sequence[str], most: int) -> _File | None:
        with self._lock:
            # A later commit may be known by now; what is kept is of that one then.
            for each in self._kept if known is self._known else ():
                is_whole = each.table == table and each.columns >= set(columns)
                if is_whole and each.bytes <= most:
                    each.readers += 1
                    return each
        return None

    def _write(
        self,
        snapshot: Snapshot,
        known: Known,
        table: PublicTable,
        columns: Sequence[str],
        most: int,
        check: "_Check",
    ) -> _File:
        # What was small a moment ago needs no estimate: it is checked again while it is written.
        is_small = self._sizes.get(table.name, most) <= most // 4
        if not is_small and snapshot.least_bytes(table, columns, most=most) > most:
            raise self._too_large(table.name)
        file = TemporaryFile(dir=self._place())  # noqa: SIM115 - closed when it is dropped
        try:
            written = self._write_rows(snapshot, table.name, columns, file, most, check)
        except BaseException as error:
            file.close()
            if isinstance(error, OSError):
                raise QueryRefused(
                    f"{table.name} cannot be handed to the query: {error.strerror or error}; free "
                    f"some space in {self._place()}"
                ) from error
            raise
        self._sizes[table.name] = written
        found = _File(table.name, frozenset(columns), file, written, time.monotonic(), readers=1)
        with self._lock:
            if known is self._known:
                self._kept.append(found)
        return found

    def _write_rows(
        self,
        snapshot: Snapshot,
        table: str,
        columns: Sequence[str],
        file: BinaryIO,
        most: int,
        check: "_Check",
    ) -> int:
        with (
            snapshot.public_rows(table, columns) as rows,
            pa.ipc.new_file(pa.PythonFile(file, mode="w"), rows.schema) as stream,
        ):
            for batch in rows.batches:
                check()
                stream.write_batch(batch)
                if file.tell() > most:
                    raise self._too_large(table)
        file.flush()
        return file.tell()

    def _place(self) -> Path:
        """Return where the next file goes: shared memory, unless it is small or not there."""
        with suppress(OSError):
            free = os.statvfs(self._shared)
            if free.f_bavail * free.f_frsize > 2 * self._most_bytes:
                return self._shared
        return self._folder

    def _too_large(self, table: str) -> QueryTooLarge:
        return QueryTooLarge(
            f"the query reads more than the {self._most_bytes >> 20} MB of columns that one query "
            f"is handed ({table}); name fewer columns, ask for a smaller view, or take the rows "
            f"out: `headrace export {table} --output {table}.parquet`"
        )

    def give_back(self, handed: Handed) -> None:
        """Say that a query is done with its files."""
        with self._lock:
            for each in handed.files.values():
                each.readers -= 1
                each.used = time.monotonic()
                if each not in self._kept and not each.readers:
                    each.file.close()
            # Of what is kept for others the least recent goes first.
            idle = sorted((e for e in self._kept if not e.readers), key=lambda each: each.used)
            total = sum(each.bytes for each in self._kept)
            while idle and total > self._most_bytes:
                total -= idle[0].bytes
                self._drop([idle.pop(0)])

    def tidy(self) -> bool:
        """Drop files that no query had for a while; return whether any are left."""
        old = time.monotonic() - self._kept_seconds
        with self._lock:
            self._drop([e for e in self._kept if not e.readers and e.used <= old])
            return bool(self._kept)

    def _drop(self, files: Sequence[_File]) -> None:
        for each in list(files):
            self._kept.remove(each)
            if not each.readers:
                each.file.close()

    def close(self) -> None:
        """Drop all files."""
        with self._lock:
            self._drop(self._kept)


@dataclass(frozen=True)
class _Check:
    """Ends an export that nobody waits for any more."""

    deadline: float
    cancelled: Callable[[], bool]

    def __call__(self) -> None:
        if self.cancelled():
            raise QueryRefused("the query was ended: the asker hung up")
        if time.monotonic() > self.deadline:
            raise QueryRefused(
                "the tables of the query were not read in time; ask for less at once"
            )
