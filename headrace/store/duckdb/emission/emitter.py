"""Tell sinks how the rows of a view change: what they were before a turn against what they are.

A turn touches the rows of its delta, those whose windows close because W moves, and those that
retention ends for. Their images are taken before anything is written and again when everything is;
where the two differ, the sink is told. With `final` an open row has no image, so it is told when it
closes, and afterwards when it is corrected; and where retention ends for rows, between the two, so
that one which closes and leaves in one turn is told as if there had been two.

What a sink was not told yet *waits* in a table of its own: the keys of such rows, and their images
as the sink knows them, NULL where it knows of none. Of every other row it knows the image as it is.
So what a sink knows is never asked of a row that was not read before, and can always be read. All
of it is part of the turn's transaction, and is in `headrace.emissions` until it is in the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.errors import MergeFailed
from headrace.ledger.entries import Emission, When
from headrace.log.base import MAX_RECORD_BYTES
from headrace.plan.tables import Table
from headrace.store.duckdb.emission.images import open_keys, take_images
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import physical
from headrace.store.duckdb.tables.placing import placing_of
from headrace.store.duckdb.tables.reading import Shown, live, shown_at
from headrace.store.duckdb.tables.touching import (
    find_touched,
    key_names,
    keys_of,
    make_fillable,
    same_keys,
)
from headrace.time.clocks import NEVER
from headrace.time.windows import MIN_EDGE_US

__all__ = [
    "SinkEmitter",
    "emit_difference",
    "forget_waiting",
    "let_open_wait",
    "let_wait",
    "take_known",
    "waits",
]

_SHOWN_CHARACTERS = 100  # of a key, where an error names it


@dataclass
class SinkEmitter:
    """Tells one sink of one turn.

    `look` before anything is written, `emit_closed` once the deltas are, `emit` after everything.
    """

    file: DuckDBFile
    emission: Emission
    number: int  # among the turn's emissions

    def look(self, deltas: Sequence[pa.Table]) -> None:
        """Find the rows that the turn touches, and how they are now."""
        table = self.emission.table
        touched, keys = self._name("touched"), keys_of(table)
        find_touched(self.file, table, deltas, touched)
        for moved in self._moved():
            self.file.run(f"INSERT INTO {touched} SELECT {keys} FROM {moved}")
        if self.emission.when is not When.NOW:
            waiting = _make_waiting(self.file, table, self.emission.topic)
            self.file.run(
                f"DELETE FROM {touched} AS t USING {waiting} AS w "
                f"WHERE {same_keys('t', 'w', key_names(table))}"
            )
        self._take_images("before", live(table))

    def emit_closed(self) -> None:
        """Tell which rows close where some of them may leave. MergeFailed."""
        self._add_waiting()
        leave = self.emission.table.retention_us is not None and self.emission.after_us != NEVER
        if self.emission.final and leave:
            self._take_images("closed", shown_at(self.emission.table, self.emission.after_us))
            self._emit("before", "closed")
            self.file.run(f"ALTER TABLE {self._name('closed')} RENAME TO __before{self.number}")

    def emit(self) -> None:
        """Tell what changed. MergeFailed."""
        if self.emission.when is not When.LATER:
            self._take_images("after", live(self.emission.table))
            self._emit("before", "after")
            self.file.run(f"DROP TABLE {self._name('after')}")
        else:
            self.file.run(f"DROP TABLE {self._name('before')}")
        self.file.run(f"DROP TABLE {self._name('touched')}")

    def _emit(self, old: str, new: str) -> None:
        """Tell how two tables of images differ, and drop the older one."""
        before, after = self._name(old), self._name(new)
        _emit(self.file, self.emission, before, after, key_names(self.emission.table))
        self.file.run(f"DROP TABLE {before}")

    def _add_waiting(self) -> None:
        """Let what is touched wait, or tell what waits with it."""
        touched, before = map(self._name, ("touched", "before"))
        keys = key_names(self.emission.table)
        if self.emission.when is not When.NOW:
            waiting = _waiting(self.emission.topic)
            self.file.run(
                f"INSERT INTO {waiting} "
                f"SELECT {', '.join(f't.{key}' for key in keys)}, b.__key, b.__row "
                f"FROM (SELECT DISTINCT * FROM {touched}) t "
                f"LEFT JOIN {before} b ON {same_keys('t', 'b', keys)}"
            )
        if self.emission.when is When.WITH_KEPT:
            known = f"SELECT * FROM {waiting} WHERE __row IS NOT NULL"
            for name, rows in (
                (touched, f"SELECT {', '.join(keys)} FROM {waiting}"),
                (before, known),
            ):
                self.file.run(f"CREATE OR REPLACE TEMP TABLE {name} AS {rows}")
            self.file.run(f"DELETE FROM {waiting}")

    def _moved(self) -> list[str]:
        """Return the keys of rows that change because W moves: they close, or they leave."""
        table = self.emission.table
        placing = placing_of(table)
        before, after = self.emission.before_us, self.emission.after_us
        if after in (before, NEVER):
            return []
        shifts = [0]
        if table.retention_us is not None:
            shifts.append(table.retention_us)
        first = MIN_EDGE_US if before == NEVER else before
        found = [placing.ending(table, first - each, after - each) for each in shifts]
        return [each for each in found if each is not None]

    def _take_images(self, when: str, shown: Shown) -> None:
        touched, closed = self._name("touched"), _closed(self.emission.final)
        take_images(self.file, shown, self._name(when), closed=closed, among=touched)

    def _name(self, kind: str) -> str:
        return f"temp.__{kind}{self.number}"


def emit_difference(file: DuckDBFile, emission: Emission, known: str | None) -> None:
    """Tell a sink how all rows of its view differ from table `known`, or all of them. MergeFailed.

    The version may be another one than `known` is from.
    """
    before, after = known or "temp.__nothing", "temp.__all"
    take_images(file, live(emission.table), after, closed=_closed(emission.final))
    if known is None:
        file.run(f"CREATE TEMP TABLE {before} AS FROM {after} LIMIT 0")
    _emit(file, emission, before, after, ["__key"])
    for name in (before, after):
        file.run(f"DROP TABLE {name}")


def take_known(file: DuckDBFile, table: Table, topic: str, into: str, *, final: bool) -> None:
    """Make a table of the images that a sink knows of a version of its view."""
    waiting = _waiting(topic) if _is_table(file, topic) else None
    take_images(file, live(table), into, closed=_closed(final), but=waiting)
    if waiting is not None:
        make_fillable(file, into)
        file.run(f"INSERT INTO {into} FROM {waiting} WHERE __row IS NOT NULL")


def let_wait(file: DuckDBFile, table: Table, topic: str) -> None:
    """Let all rows of a view wait for a sink that knows none of them."""
    waiting = _make_waiting(file, table, topic)
    rows = f"SELECT {keys_of(table)}, NULL, NULL FROM {placing_of(table).all_keys(table)}"
    file.run(f"INSERT INTO {waiting} {rows}")


def let_open_wait(file: DuckDBFile, table: Table, topic: str, *, known: bool) -> None:
    """Let the open rows of a view wait for a sink that knows all of them, or none."""
    waiting, found = _make_waiting(file, table, topic), "temp.__open"
    if known:
        take_images(file, live(table), found, closed=False, but=waiting)
    else:
        rows = f"SELECT *, NULL AS __key, NULL AS __row FROM ({open_keys(table)}) o"
        same = same_keys("o", "w", key_names(table))
        file.run(f"CREATE TEMP TABLE {found} AS {rows} ANTI JOIN {waiting} w ON {same}")
    file.run(f"INSERT INTO {waiting} FROM {found}")
    file.run(f"DROP TABLE {found}")


def _make_waiting(file: DuckDBFile, table: Table, topic: str) -> str:
    waiting = _waiting(topic)
    file.run(
        f"CREATE TABLE IF NOT EXISTS {waiting} AS "
        f"SELECT {keys_of(table)}, '' AS __key, '' AS __row FROM {live(table).source} LIMIT 0"
    )
    make_fillable(file, waiting)
    return waiting


def forget_waiting(file: DuckDBFile, topic: str) -> None:
    """Let go of what waits for a sink."""
    file.run(f"DROP TABLE IF EXISTS {_waiting(topic)}")


def waits(file: DuckDBFile, topic: str) -> bool:
    """Whether a row waits that a sink has to be told of."""
    return _is_table(file, topic) and bool(file.rows(f"FROM {_waiting(topic)} LIMIT 1"))


def _closed(final: bool) -> bool | None:
    return True if final else None


def _is_table(file: DuckDBFile, topic: str) -> bool:
    found = file.rows(
        "FROM duckdb_tables() WHERE schema_name = 'headrace' AND table_name = ?",
        [_waiting_name(topic)],
    )
    return bool(found)


def _waiting(topic: str) -> str:
    return physical(_waiting_name(topic))


def _waiting_name(topic: str) -> str:
    # Topics are told apart by case, and tables of DuckDB are not.
    return f"__waiting_{topic.encode().hex()}"


def _emit(
    file: DuckDBFile, emission: Emission, before: str, after: str, keys: Sequence[str]
) -> None:
    """Write what differs between two tables of images to be published, in the order of the keys.

    MergeFailed: a row is larger than a record may be.
    """
    _check_sizes(file, emission, after)
    changed = (
        f"SELECT coalesce(b.__key, a.__key) AS key, b.__row AS old, a.__row AS new "
        f"FROM {before} b FULL JOIN {after} a ON {same_keys('b', 'a', keys)} "
        f"WHERE b.__row IS DISTINCT FROM a.__row"
    )
    if emission.mode == "upsert":
        told = f"SELECT key, new AS value FROM ({changed}) ORDER BY key"
    else:
        told = (
            f"""SELECT key, '{{"_change":"retract",' || old[2:] AS value, 0 AS place """
            f"FROM ({changed}) WHERE old IS NOT NULL UNION ALL "
            f"""SELECT key, '{{"_change":"insert",' || new[2:], 1 FROM ({changed}) """
            f"WHERE new IS NOT NULL"
        )
        told = f"SELECT key, value FROM ({told}) ORDER BY key, place"
    file.run(
        f"INSERT INTO headrace.emissions "
        f"SELECT nextval('headrace.emission_numbers'), ?, ?, key, value FROM ({told})",
        [emission.sink, emission.topic],
    )


def _check_sizes(file: DuckDBFile, emission: Emission, images: str) -> None:
    """Refuse rows that the log would refuse when it is too late, now or when they are retracted."""
    change = "" if emission.mode == "upsert" else '"_change":"retract",'
    size = f"strlen(__key) + strlen(__row) + {len(change)}"
    large = file.rows(
        f"SELECT __key[:{_SHOWN_CHARACTERS}], {size} AS size FROM {images} "
        f"WHERE size > {MAX_RECORD_BYTES} ORDER BY size DESC, __key LIMIT 1"
    )
    for key, found in large:
        view = emission.table.view
        raise MergeFailed(
            f"view {view}: the row {key} has {found} bytes as a record of its sink "
            f"{emission.sink}, {MAX_RECORD_BYTES} is the most that the log takes. Leave its "
            f"longest column out of the view or make it shorter, a text with left(x, 1000), a list "
            f"with collect_list(x, 100); or drop the sink, and the view goes on as it is.",
            view=view,
        )
