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
from headrace.store.duckdb.changes.images import count_near, read_images, read_near, take_images
from headrace.store.duckdb.changes.layout import META, columns_of
from headrace.store.duckdb.changes.sizes import are_small
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.placing import Near, placing_of
from headrace.store.duckdb.tables.reading import Shown, shown_at
from headrace.store.duckdb.tables.touching import Touched, find_touched, key_names
from headrace.time.clocks import NEVER
from headrace.time.windows import MIN_EDGE_US

__all__ = ["FEW_ROWS", "ChangeMaker", "Made"]

#: Of so many touched rows the images are compared in memory.
FEW_ROWS = 8_192
# So many rows of the same times are read with the touched ones, and some for each of a delta.
_NEAR_ROWS = 256
_NEAR_FACTOR = 4


class Made(NamedTuple):
    """How many changes a commit has, and whether all of them are surely small as records.

    `held_bytes` is about what they hold; None: the store has to be asked.
    """

    rows: int
    are_small: bool
    held_bytes: int | None


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
        self.commit = commit
        self.is_crowded = False
        self._file = file
        self._changes = _Changes(file, table, into, commit)
        self._before_us, self._after_us = watermarks
        self._images: _Images

    def look(self, deltas: Sequence[pa.Table], *, may_be_near: bool = True) -> None:
        """Find the rows that the turn touches, and how they are now.

        `may_be_near`: it is worth a try to read all rows of these times, which costs less where
        few are not touched; `is_crowded` tells if it was in vain.
        """
        ends, placing = self._ends(), placing_of(self.table)
        if may_be_near and (near := self._near(deltas, ends)) is not None:
            self._images = near
            if near.begin(self._before_us):
                return
            self.is_crowded = True
        moved = [moved for each in ends if (moved := placing.ending(self.table, *each))]
        name = f"temp.__touched_{_hex(self.table)}"
        touched = find_touched(self._file, self.table, deltas, name, moved=moved)
        kind = _Few if touched.rows <= FEW_ROWS else _InStore
        self._images = kind(self._changes, touched)
        self._images.begin(self._before_us)

    def _near(self, deltas: Sequence[pa.Table], ends: Sequence[tuple[int, int]]) -> "_Near | None":
        rows = [delta for delta in deltas if delta.num_rows]
        count = sum(delta.num_rows for delta in rows)
        if count > FEW_ROWS or self.table.children:
            return None  # what is in the items of a row is looked up for touched rows only
        delta = pa.concat_tables(rows) if rows else None
        near = placing_of(self.table).near(delta, ends)
        # A power of two: the statement is the same in many turns.
        most = min(1 << (_NEAR_ROWS + _NEAR_FACTOR * count).bit_length(), FEW_ROWS)
        return None if near is None else _Near(self._changes, near, most)

    def close(self) -> None:
        """Note which rows are closed, where some of them may leave in the same commit."""
        if self._some_close_and_leave():
            self._images.note(self._after_us)

    def finish(self) -> Made:
        """Write what changed."""
        self._images.note(self._after_us)
        self._images.end()
        return self._changes.made

    def _ends(self) -> list[tuple[int, int]]:
        """Return when windows end whose rows change because W moves: they close, or they leave."""
        placing = placing_of(self.table)
        if self._after_us in (self._before_us, NEVER):
            return []
        shifts = [0]
        if self.table.retention_us is not None:
            shifts.append(self.table.retention_us)
        first = MIN_EDGE_US if self._before_us == NEVER else self._before_us
        ends = [(first - each, self._after_us - each) for each in shifts]
        return [each for each in ends if placing.ending(self.table, *each) is not None]

    def _some_close_and_leave(self) -> bool:
        retention_us = self.table.retention_us
        if retention_us is None or self._after_us in (self._before_us, NEVER):
            return False
        return self._before_us == NEVER or self._after_us - self._before_us > retention_us


class _Changes:
    """The changes of a version in one commit: where they go, and how many there are."""

    def __init__(self, file: DuckDBFile, table: Table, into: str, commit: int) -> None:
        self.file = file
        self.table = table
        self.into = into
        self.keys = key_names(table)
        self.columns = list(columns_of(relation_of(table)))
        self._commit = commit
        self._step = 0
        self._made = Made(0, are_small=True, held_bytes=0)

    @property
    def made(self) -> Made:
        return self._made

    def insert(self, before: pa.Table, after: pa.Table) -> None:
        """Write how two tables of images in memory differ, as the next step of the commit."""
        found = find_differences(before, after, keys=self.keys, columns=self.columns)
        if found.num_rows:
            columns = ", ".join(self.columns)
            place = {"commit": self._commit, "step": self._step, "made": self._made.rows}
            with self.file.registered("__changes", found) as name:
                self.file.run(
                    f"INSERT INTO {self.into} ({META}, {columns}) "
                    f"SELECT $commit, $step, $made + number, sign, _closed, {columns} FROM {name}",
                    place,
                )
        small = are_small(found, relation_of(self.table))
        self._count(found.num_rows, small=small, held_bytes=found.nbytes)

    def insert_stored(self, before: str, after: str) -> None:
        """Do the same of two tables in the store."""
        place = (self._commit, self._step, self._made.rows)
        written = insert_differences(
            self.file, self.into, before, after, keys=self.keys, columns=self.columns, place=place
        )
        self._count(written, small=False, held_bytes=None)

    def _count(self, rows: int, *, small: bool, held_bytes: int | None) -> None:
        made = self._made
        if held_bytes is not None and made.held_bytes is not None:
            held_bytes += made.held_bytes
        else:
            held_bytes = None
        self._made = Made(made.rows + rows, made.are_small and small, held_bytes)
        self._step += 1


class _Images(ABC):
    """The images of the rows that a turn touches, compared with newer ones step by step."""

    def __init__(self, changes: _Changes) -> None:
        self._changes = changes
        self._file = changes.file

    def _shown(self, watermark_us: int) -> Shown:
        return shown_at(self._changes.table, watermark_us)

    @abstractmethod
    def begin(self, watermark_us: int) -> bool:
        """Take the images that others are compared with; return whether that can be done.

        Rows are closed as they are when W is `watermark_us`.
        """

    @abstractmethod
    def note(self, watermark_us: int) -> None:
        """Write how rows differ now, as the next step of the commit."""

    @abstractmethod
    def end(self) -> None:
        """Let go of all that is held."""


class _InMemory(_Images):
    """Few images, as Arrow tables: no statement of the store's has to be planned to compare."""

    @abstractmethod
    def _read(self, watermark_us: int) -> pa.Table: ...

    def begin(self, watermark_us: int) -> bool:
        self._before = self._read(watermark_us)
        return True

    def note(self, watermark_us: int) -> None:
        after = self._read(watermark_us)
        self._changes.insert(self._before, after)
        self._before = after


class _Near(_InMemory):
    """Images of all rows that a test holds for; those that are not touched do not differ."""

    def __init__(self, changes: _Changes, near: Near, most: int) -> None:
        super().__init__(changes)
        self._near = near
        self._most = most

    def begin(self, watermark_us: int) -> bool:
        # Once: a turn adds no more rows than its delta has.
        if count_near(self._file, self._changes.table, self._near) > self._most:
            return False
        return super().begin(watermark_us)

    def _read(self, watermark_us: int) -> pa.Table:
        return read_near(self._file, self._changes.table, self._near, watermark_us)

    def end(self) -> None:
        pass


class _Few(_InMemory):
    """Images of touched rows."""

    def __init__(self, changes: _Changes, touched: Touched) -> None:
        super().__init__(changes)
        self._touched = touched

    def _read(self, watermark_us: int) -> pa.Table:
        return read_images(self._file, self._shown(watermark_us), self._touched)

    def end(self) -> None:
        self._file.run(f"DROP TABLE {self._touched.name}")


class _InStore(_Images):
    """Images of any number of touched rows, in temporary tables."""

    def __init__(self, changes: _Changes, touched: Touched) -> None:
        super().__init__(changes)
        self._touched = touched

    def begin(self, watermark_us: int) -> bool:
        shown = self._shown(watermark_us)
        take_images(self._file, shown, self._name("before"), among=self._touched)
        return True

    def note(self, watermark_us: int) -> None:
        before, after = self._name("before"), self._name("after")
        take_images(self._file, self._shown(watermark_us), after, among=self._touched)
        self._changes.insert_stored(before, after)
        self._file.run(f"DROP TABLE {before}")
        self._file.run(f"ALTER TABLE {after} RENAME TO {before.removeprefix('temp.')}")

    def end(self) -> None:
        for name in (self._name("before"), self._touched.name):
            self._file.run(f"DROP TABLE {name}")

    def _name(self, kind: str) -> str:
        return f"temp.__{kind}_{_hex(self._changes.table)}"


def _hex(table: Table) -> str:
    return table.name.encode().hex()
