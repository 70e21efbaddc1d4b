"""Make the changes of a view in a commit: its rows before the turn against its rows after it.

A turn touches the rows of its delta, those whose windows close because W moves, and those that
retention ends for. Their images are taken before anything is written and again when everything is;
where the two differ there is a change. `_events` is no declared column, so it makes none.

A row that is closed and leaves in one commit changes twice, as if there had been two commits:
readers who want closed rows only have to see it.
"""

from collections.abc import Sequence

import pyarrow as pa

from headrace.ledger.following import relation_of
from headrace.plan.tables import Table
from headrace.store.duckdb.changes.images import take_images
from headrace.store.duckdb.changes.layout import META, columns_of
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.placing import placing_of
from headrace.store.duckdb.tables.reading import Shown, live, shown_at
from headrace.store.duckdb.tables.touching import find_touched, key_names, keys_of, same_keys
from headrace.time.clocks import NEVER
from headrace.time.windows import MIN_EDGE_US

__all__ = ["ChangeMaker", "insert_differences"]


class ChangeMaker:
    """Makes the changes of one version in one commit, within the caller's transaction.

    `look` before anything is written, `close` once the deltas are merged and rows are still to
    leave, `finish` after everything. `into` is the table of changes; `after_us` is W after the
    turn, None if it does not move.
    """

    def __init__(
        self, file: DuckDBFile, table: Table, into: str, after_us: int | None, commit: int
    ) -> None:
        self.table = table
        self.into = into
        self._file = file
        self.commit = commit
        self._before_us = self._known_watermark_us()
        self._after_us = self._before_us if after_us is None else after_us
        self._rows = 0
        self._step = 0

    def look(self, deltas: Sequence[pa.Table]) -> None:
        """Find the rows that the turn touches, and how they are now."""
        touched = f"temp.{self._name('touched')}"
        find_touched(self._file, self.table, deltas, touched)
        for moved in self._moved():
            self._file.run(f"INSERT INTO {touched} SELECT {keys_of(self.table)} FROM {moved}")
        self._take("before", live(self.table))

    def close(self) -> None:
        """Note which rows are closed, where some of them may leave in the same commit."""
        if self._some_close_and_leave():
            self._take("after", shown_at(self.table, self._after_us))
            self._note()
            before, after = self._name("before"), self._name("after")
            self._file.run(f"ALTER TABLE temp.{after} RENAME TO {before}")
            self._step = 1

    def finish(self) -> int:
        """Write what changed, and return how many rows that is."""
        self._take("after", live(self.table))
        self._note()
        for kind in ("after", "touched"):
            self._file.run(f"DROP TABLE temp.{self._name(kind)}")
        return self._rows

    def _note(self) -> None:
        """Write how the newer images differ from the older ones, and drop these."""
        before, after = (f"temp.{self._name(kind)}" for kind in ("before", "after"))
        self._rows += insert_differences(
            self._file,
            self.into,
            before,
            after,
            keys=key_names(self.table),
            columns=list(columns_of(relation_of(self.table))),
            place=(self.commit, self._step, self._rows),
        )
        self._file.run(f"DROP TABLE {before}")

    def _take(self, kind: str, shown: Shown) -> None:
        touched = f"temp.{self._name('touched')}"
        take_images(self._file, shown, f"temp.{self._name(kind)}", among=touched)

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

    def _known_watermark_us(self) -> int:
        found = self._file.rows(
            "SELECT watermark_us FROM headrace.view_watermarks WHERE view = ? AND version = ?",
            [self.table.view, self.table.version],
        )
        return int(found[0][0]) if found else NEVER

    def _name(self, kind: str) -> str:
        return f"__{kind}_{self.table.name.encode().hex()}"


def insert_differences(
    file: DuckDBFile,
    name: str,
    before: str,
    after: str,
    *,
    keys: Sequence[str],
    columns: Sequence[str],
    place: tuple[int, int, int],
) -> int:
    """Write how two tables of images differ as changes, and return how many rows that is.

    `place` is the commit, the step, and how many changes the commit has already.
    """
    commit, step, made = place
    declared = [column for column in columns if column.startswith("c")]
    differs = " OR ".join(f"b.{each} IS DISTINCT FROM a.{each}" for each in declared) or "false"
    # A session that grows is open again, and may look the same otherwise.
    differs = f"({differs} OR (b._closed AND NOT a._closed))"
    chosen = [
        f"CASE WHEN sign < 0 THEN b.{each} ELSE a.{each} END AS {each}"
        for each in ("_closed", *columns)
    ]
    pairs = (
        f"SELECT sign, {', '.join(chosen)} "
        f"FROM (SELECT *, true AS __there FROM {before}) b "
        f"FULL JOIN (SELECT *, true AS __there FROM {after}) a ON {same_keys('b', 'a', keys)} "
        f"CROSS JOIN (VALUES (-1), (0), (1)) AS signs(sign) "
        f"WHERE CASE sign WHEN -1 THEN b.__there AND (a.__there IS NULL OR {differs}) "
        f"WHEN 1 THEN a.__there AND (b.__there IS NULL OR {differs}) "
        f"ELSE b.__there AND a.__there AND NOT {differs} AND a._closed AND NOT b._closed END"
    )
    order = ", ".join([*(each for each in columns if each.startswith("k")), "sign"])
    found = file.rows(
        f"INSERT INTO {name} ({META}, {', '.join(columns)}) "
        f"SELECT {commit}, {step}, {made} + row_number() OVER (ORDER BY {order}), sign, "
        f"{', '.join(['_closed', *columns])} FROM ({pairs})"
    )
    return int(found[0][0])
