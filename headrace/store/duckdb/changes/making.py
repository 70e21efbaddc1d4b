"""Make the changes of a view in a commit: its rows before the turn against its rows after it.

A turn touches the rows of its delta, those whose windows close because W moves, and those that
retention ends for. Their images are taken before anything is written and again when everything is;
where the two differ there is a change. `_events` is no declared column, so it makes none.

A row that is closed and leaves in one commit changes twice, as if there had been two commits:
readers who want closed rows only have to see it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from headrace.ledger.following import relation_of
from headrace.plan.tables import Table
from headrace.store.duckdb.changes.differing import find_differences, insert_differences
from headrace.store.duckdb.changes.images import read_images, take_images
from headrace.store.duckdb.changes.layout import META, columns_of
from headrace.store.duckdb.changes.sizes import are_small
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.placing import placing_of
from headrace.store.duckdb.tables.reading import Shown, shown_at
from headrace.store.duckdb.tables.touching import Touched, find_touched, key_names
from headrace.time.clocks import NEVER
from headrace.time.windows import MIN_EDGE_US

__all__ = ["FEW_ROWS", "ChangeMaker", "Made"]

#: Of so many touched rows the images are compared in memory.
FEW_ROWS = 8_192


class Made(NamedTuple):
    """How many changes a commit has, and whether all of them are surely small as records."""

    rows: int
    are_small: bool


class ChangeMaker:
    """Makes the changes of one version in one commit, within the caller's transaction.

    `look` before anything is written, `close` once the deltas are merged and rows are still to
    leave, `finish` after everything. `into` is the table of changes; `watermarks` are W before the
    turn and after it.
    """

    def __init__(
        self,
        file: DuckDBFile,
        table: Table,
        into: str,
        watermarks: tuple[int, int],
        commit: int,
    ) -> None:
        self.table = table
        self.into = into
        self.commit = commit
        self._file = file
        self._before_us, self._after_us = watermarks
        self._images: _Images

    def look(self, deltas: Sequence[pa.Table]) -> None:
        """Find the rows that the turn touches, and how they are now."""
        name = f"temp.__touched_{_hex(self.table)}"
        touched = find_touched(self._file, self.table, deltas, name, moved=self._moved())
        kind = _InMemory if touched.rows <= FEW_ROWS else _InStore
        self._images = kind(self._file, self.table, self.into, touched, self.commit)
        self._images.begin(shown_at(self.table, self._before_us))

    def close(self) -> None:
        """Note which rows are closed, where some of them may leave in the same commit."""
        if self._some_close_and_leave():
            self._images.note(shown_at(self.table, self._after_us))

    def finish(self) -> Made:
        """Write what changed."""
        self._images.note(shown_at(self.table, self._after_us))
        return self._images.end()

    def _moved(self) -> list[str]:
        """Return the keys of rows that change because W moves: they close, or they leave."""
        placing = placing_of(self.table)
        if self._after_us in (self._before_us, NEVER):
            return []
        shifts = [0]
        if self.table.retention_us is not None:
            shifts.append(self.table.retention_us)
        first = MIN_EDGE_US if self._before_us == NEVER else self._before_us
        ends = [(first - each, self._after_us - each) for each in shifts]
        found = [placing.ending(self.table, *each) for each in ends]
        return [each for each in found if each is not None]

    def _some_close_and_leave(self) -> bool:
        retention_us = self.table.retention_us
        if retention_us is None or self._after_us in (self._before_us, NEVER):
            return False
        return self._before_us == NEVER or self._after_us - self._before_us > retention_us


class _Images(ABC):
    """The images of the rows that a turn touches, compared with newer ones step by step."""

    def __init__(
        self, file: DuckDBFile, table: Table, into: str, touched: Touched, commit: int
    ) -> None:
        self._file = file
        self._table = table
        self._into = into
        self._touched = touched
        self._commit = commit
        self._step = 0
        self._made = Made(0, are_small=False)
        self._keys = key_names(table)
        self._columns = list(columns_of(relation_of(table)))

    @abstractmethod
    def begin(self, shown: Shown) -> None:
        """Take the images that others are compared with."""

    @abstractmethod
    def note(self, shown: Shown) -> None:
        """Write how rows differ now, as the next step of the commit."""

    def end(self) -> Made:
        """Let go of all images; return what was written."""
        self._file.run(f"DROP TABLE {self._touched.name}")
        return self._made


class _InStore(_Images):
    """Any number of images, in temporary tables."""

    def begin(self, shown: Shown) -> None:
        take_images(self._file, shown, self._name("before"), among=self._touched)

    def note(self, shown: Shown) -> None:
        before, after = self._name("before"), self._name("after")
        take_images(self._file, shown, after, among=self._touched)
        written = insert_differences(
            self._file,
            self._into,
            before,
            after,
            keys=self._keys,
            columns=self._columns,
            place=(self._commit, self._step, self._made.rows),
        )
        self._made = Made(self._made.rows + written, are_small=False)
        self._file.run(f"DROP TABLE {before}")
        self._file.run(f"ALTER TABLE {after} RENAME TO {before.removeprefix('temp.')}")
        self._step += 1

    def end(self) -> Made:
        self._file.run(f"DROP TABLE {self._name('before')}")
        return super().end()

    def _name(self, kind: str) -> str:
        return f"temp.__{kind}_{_hex(self._table)}"


class _InMemory(_Images):
    """A few images, as Arrow tables: no statement of the store's has to be planned to compare."""

    def begin(self, shown: Shown) -> None:
        self._before = read_images(self._file, shown, self._touched)
        self._made = Made(0, are_small=True)

    def note(self, shown: Shown) -> None:
        after = read_images(self._file, shown, self._touched)
        found = find_differences(self._before, after, keys=self._keys, columns=self._columns)
        if found.num_rows:
            self._insert(found)
        self._before = after
        self._step += 1

    def _insert(self, found: pa.Table) -> None:
        columns = ", ".join(self._columns)
        with self._file.registered("__changes", found) as name:
            self._file.run(
                f"INSERT INTO {self._into} ({META}, {columns}) SELECT {self._commit}, "
                f"{self._step}, {self._made.rows} + number, sign, _closed, {columns} FROM {name}"
            )
        small = self._made.are_small and are_small(found, relation_of(self._table))
        self._made = Made(self._made.rows + found.num_rows, small)


def _hex(table: Table) -> str:
    return table.name.encode().hex()
