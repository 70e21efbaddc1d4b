"""Make the changes of a view in a commit: its rows before the turn against its rows after it.

A turn touches the rows of its delta, those whose windows close because W moves, and those that
retention ends for. Their images are taken before anything is written and again when everything is;
where the two differ there is a change. `_events` is no declared column, so it makes none.

A row that is closed and leaves in one commit changes twice, as if there had been two commits:
readers who want closed rows only have to see it.

The next turn mostly touches rows of the same times. So the images that a commit ends with are
carried over to the next one, which begins with them and need not read them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from headrace.ledger.following import relation_of
from headrace.plan.tables import Table
from headrace.store.duckdb.changes.differing import find_differences, insert_differences, placed
from headrace.store.duckdb.changes.images import count_near, read_images, read_near, take_images
from headrace.store.duckdb.changes.layout import columns_of
from headrace.store.duckdb.changes.sizes import are_small
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.placing import NOWHERE, Near, Span, placing_of
from headrace.store.duckdb.tables.reading import Shown, shown_at, shown_then
from headrace.store.duckdb.tables.touching import Touched, find_touched, key_names
from headrace.store.duckdb.tables.truncating import truncated_rows
from headrace.time.clocks import NEVER
from headrace.time.windows import MIN_EDGE_US

__all__ = ["FEW_ROWS", "Carried", "ChangeMaker", "Made"]

#: Of so many touched rows the images are compared in memory.
FEW_ROWS = 8_192
#: Of a view's images, from one commit to the next.
MAX_CARRIED_BYTES = 1 << 20
# So many rows of the same times are read with the touched ones, and some for each of a delta.
_NEAR_ROWS = 256
_NEAR_FACTOR = 4


class Made(NamedTuple):
    """How many changes a commit has, and whether all of them are surely small as records.

    `changes` are the rows as they were written; None: there are none, or the store alone has them.
    """

    rows: int
    are_small: bool
    changes: pa.Table | None


class Carried(NamedTuple):
    """The images of all rows that a test holds for, as a commit left them, with W as it was.

    It holds for no more than `rows` rows; some may not be shown, and have no image.
    """

    near: Near
    images: pa.Table
    rows: int
    watermark_us: int


class ChangeMaker:
    """Makes the changes of one version in one commit, within the caller's transaction.

    `look` before anything is written, `close` once the deltas are merged and rows are still to
    leave, `finish` after everything. `into` is the table of changes; `watermarks` are W before the
    turn and after it. `carried` is what the commit before it left, and then what this one leaves.
    """

    def __init__(
        self,
        file: DuckDBFile,
        table: Table,
        into: str,
        watermarks: tuple[int, int],
        commit: int,
        carried: Carried | None = None,
    ) -> None:
        self.table = table
        self.commit = commit
        self.is_crowded = False
        self.carried = carried
        self._file = file
        self._changes = _Changes(file, table, into, commit)
        self._before_us, self._after_us = watermarks
        self._images: _Images | None = None  # none are touched

    def look(
        self,
        deltas: Sequence[pa.Table],
        *,
        may_be_near: bool = True,
        truncates: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        """Find the rows that the turn touches, and how they are now.

        A table may be truncated: by partition, up to that offset.

        `may_be_near`: it is worth a try to read all rows of these times, which costs less where
        few are not touched; `is_crowded` tells if it was in vain.
        """
        placing, ends = placing_of(self.table), (self._closing(), self._leaving())
        carried, self.carried = self.carried, None
        may_be_near = may_be_near and not truncates
        if may_be_near and (near := self._near(deltas, *ends)) is not None:
            if near == NOWHERE:
                self.carried = carried
                return
            added = int(sum(delta.num_rows for delta in deltas))
            most = min(_NEAR_ROWS + _NEAR_FACTOR * added, FEW_ROWS)
            if carried is not None and self._is_of_use(carried, near, most):
                self._images = _Near(self._changes, carried.near, most, added, carried)
            else:
                self._images = _Near(self._changes, near, most, added)
            if self._images.begin(self._before_us):
                return
            self.is_crowded = True
        moved = [moved for each in ends if each and (moved := placing.ending(self.table, *each))]
        if truncates:
            moved.append(truncated_rows(self.table, truncates))
        name = f"temp.__touched_{_hex(self.table)}"
        touched = find_touched(self._file, self.table, deltas, name, moved=moved)
        kind = _Few if touched.rows <= FEW_ROWS else _InStore
        self._images = kind(self._changes, touched)
        self._images.begin(self._before_us)

    def _near(
        self, deltas: Sequence[pa.Table], closing: Span | None, leaving: Span | None
    ) -> Near | None:
        rows = [delta for delta in deltas if delta.num_rows]
        if sum(delta.num_rows for delta in rows) > FEW_ROWS or self.table.children:
            return None  # what is in the items of a row is looked up for touched rows only
        delta = pa.concat_tables(rows) if rows else None
        return placing_of(self.table).near(delta, closing, leaving)

    def _is_of_use(self, carried: Carried, near: Near, most: int) -> bool:
        is_now = carried.watermark_us == self._before_us
        return is_now and carried.rows <= most and carried.near.covers(near)

    def close(self) -> None:
        """Note which rows are closed, where some of them may leave in the same commit."""
        if self._images is not None and self._some_close_and_leave():
            self._images.note(self._after_us)

    def finish(self) -> Made:
        """Write what changed."""
        if self._images is not None:
            self._images.note(self._after_us)
            self.carried = self._images.end()
        elif self.carried is not None:
            # No window ended, so its rows are closed or open as they were.
            self.carried = self.carried._replace(watermark_us=self._after_us)
        return self._changes.made

    def _closing(self) -> Span | None:
        """Return when windows end whose rows close because W moves; None: no window does."""
        return self._ending(0)

    def _leaving(self) -> Span | None:
        """Return the same of rows that leave."""
        retention_us = self.table.retention_us
        return None if retention_us is None else self._ending(retention_us)

    def _ending(self, shift_us: int) -> Span | None:
        if self._after_us in (self._before_us, NEVER):
            return None
        first = MIN_EDGE_US if self._before_us == NEVER else self._before_us
        span = (first - shift_us, self._after_us - shift_us)
        return span if placing_of(self.table).ending(self.table, *span) is not None else None

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
        self._rows = 0
        self._are_small = True
        self._written: list[pa.Table] | None = []  # None: some of it is in the store alone

    @property
    def made(self) -> Made:
        changes = pa.concat_tables(self._written) if self._written else None
        return Made(self._rows, self._are_small, changes)

    def insert(self, before: pa.Table, after: pa.Table) -> None:
        """Write how two tables of images in memory differ, as the next step of the commit."""
        found = find_differences(before, after, keys=self.keys, columns=self.columns)
        if found.num_rows:
            changes = placed(found, self._commit, self._step, self._rows)
            columns = ", ".join(changes.column_names)
            with self.file.registered("__changes", changes) as name:
                self.file.run_again(f"INSERT INTO {self.into} ({columns}) FROM {name}")
            if self._written is not None:
                self._written.append(changes)
        self._count(found.num_rows, small=are_small(found, relation_of(self.table)))

    def insert_stored(self, before: str, after: str) -> None:
        """Do the same of two tables in the store."""
        place = (self._commit, self._step, self._rows)
        rows = insert_differences(
            self.file, self.into, before, after, keys=self.keys, columns=self.columns, place=place
        )
        if rows:
            self._written = None
        self._count(rows, small=False)

    def _count(self, rows: int, *, small: bool) -> None:
        self._rows += rows
        self._are_small &= small
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
    def end(self) -> Carried | None:
        """Let go of all that is held; return what the next commit may begin with."""


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
    """Images of all rows that a test holds for; those that are not touched do not differ.

    `added` is how many rows the turn's delta has, `most` how many rows are read to find those.
    """

    def __init__(
        self, changes: _Changes, near: Near, most: int, added: int, carried: Carried | None = None
    ) -> None:
        super().__init__(changes)
        self._near = near
        self._most = most
        self._added = added
        self._carried = carried

    def begin(self, watermark_us: int) -> bool:
        if self._carried is not None:
            self._before, self._rows = self._carried.images, self._carried.rows
            return True
        # Once: a turn adds no more rows than its delta has.
        self._rows = count_near(self._file, self._changes.table, self._near.whole)
        return self._rows <= self._most and super().begin(watermark_us)

    def _read(self, watermark_us: int) -> pa.Table:
        self._watermark_us = watermark_us
        return read_near(self._file, self._changes.table, self._near.whole, watermark_us)

    def end(self) -> Carried | None:
        images, near = self._before, self._near._replace(leaving=None)
        rows = images.num_rows
        if shown_then(self._changes.table).condition:  # some may be there and not shown
            rows = self._rows + self._added
        if not near.is_open or rows > self._most or images.nbytes > MAX_CARRIED_BYTES:
            return None  # the next one begins with the rows of its own times
        return Carried(near, images, rows, self._watermark_us)


class _Few(_InMemory):
    """Images of touched rows."""

    def __init__(self, changes: _Changes, touched: Touched) -> None:
        super().__init__(changes)
        self._touched = touched

    def _read(self, watermark_us: int) -> pa.Table:
        return read_images(self._file, self._shown(watermark_us), self._touched)

    def end(self) -> Carried | None:
        self._file.run(f"DROP TABLE {self._touched.name}")
        return None


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

    def end(self) -> Carried | None:
        for name in (self._name("before"), self._touched.name):
            self._file.run(f"DROP TABLE {name}")
        return None

    def _name(self, kind: str) -> str:
        return f"temp.__{kind}_{_hex(self._changes.table)}"


def _hex(table: Table) -> str:
    return table.name.encode().hex()
