"""Tell sinks how the rows of a view change: what they were before a turn against what they are.

A turn touches the rows of its delta, those whose windows close because W moves, and those that
retention ends for. Their *images*, key and row as JSON, are taken before anything is written and
again when everything is; where the two differ, the sink is told. With `final` an open row has no
image, so it is told when it closes, and afterwards when it is corrected.

What is not due yet is kept in a table of the sink's: the images from before the first change that
it was not told of. All of it is part of the turn's transaction, and waits in `headrace.emissions`
until it is in the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from headrace.errors import MergeFailed
from headrace.ledger.entries import Emission, When
from headrace.log.base import MAX_RECORD_BYTES
from headrace.plan.tables import GROUP, Rows, Table, quote
from headrace.schema.types import parse_type
from headrace.store.duckdb_file import DuckDBFile
from headrace.store.duckdb_json import json_object
from headrace.store.duckdb_tables import physical
from headrace.time.clocks import NEVER
from headrace.time.windows import MIN_EDGE_US

__all__ = ["Teller", "forget_pending", "has_pending", "take_rows", "tell_all", "tell_swap"]

# What an expression over a row's aggregates can raise; a division by zero is the second.
_ROW_FAULTS = (duckdb.DataError, duckdb.InvalidInputException)
_META = (("_events", parse_type("BIGINT")), ("_closed", parse_type("BOOLEAN")))
# The first key of windowed rows: what the store needs to skip the rows of other times.
_TIME_KEYS = ("window_start", "number", "first_time")
_SHOWN_CHARACTERS = 100  # of a key, where an error names it


@dataclass
class Teller:
    """Tells one sink of one turn. `look` before anything is written, `tell` after everything."""

    file: DuckDBFile
    emission: Emission
    number: int  # among the turn's emissions

    def look(self, deltas: Sequence[pa.Table]) -> None:
        """Find the rows that the turn touches, and how they are now. MergeFailed."""
        table, rows = self.emission.table, _rows(self.emission.table)
        touched = self._name("touched")
        keys = _renamed(rows)
        self.file.run(f"CREATE TEMP TABLE {touched} AS SELECT {keys} FROM {_source(table)} LIMIT 0")
        for delta in deltas:
            with self.file.registered("__delta", delta) as name:
                self.file.run(
                    f"INSERT INTO {touched} SELECT {keys} FROM ({rows.touched.format(delta=name)})"
                )
        for condition in self._moved():
            self.file.run(
                f"INSERT INTO {touched} SELECT {keys} FROM {_source(table)} WHERE {condition}"
            )
        self._take_images("before")

    def tell(self) -> None:
        """Note what changed, to be told now or kept until it is due. MergeFailed."""
        pending = _pending(self.emission.sink)
        touched, before, after = map(self._name, ("touched", "before", "after"))
        keys = _names(_rows(self.emission.table))
        if self.emission.when is not When.NOW:
            self._keep(pending, touched, before, keys)
        if self.emission.when is When.WITH_KEPT:
            self.file.run(f"DELETE FROM {touched}")
            self.file.run(f"INSERT INTO {touched} SELECT {', '.join(keys)} FROM {pending}")
            self.file.run(f"DELETE FROM {before}")
            self.file.run(f"INSERT INTO {before} SELECT * FROM {pending} WHERE __row IS NOT NULL")
            self.file.run(f"DELETE FROM {pending}")
        if self.emission.when is not When.LATER:
            self._take_images("after")
            _emit(self.file, self.emission, before, after, keys)
            self.file.run(f"DROP TABLE {after}")
        self.file.run(f"DROP TABLE {touched}")
        self.file.run(f"DROP TABLE {before}")

    def _keep(self, pending: str, touched: str, before: str, keys: Sequence[str]) -> None:
        self.file.run(f"CREATE TABLE IF NOT EXISTS {pending} AS SELECT * FROM {before} LIMIT 0")
        self.file.run(
            f"INSERT INTO {pending} "
            f"SELECT {', '.join(f't.{key}' for key in keys)}, b.__key, b.__row "
            f"FROM (SELECT DISTINCT * FROM {touched}) t "
            f"ANTI JOIN {pending} p ON {_same('t', 'p', keys)} "
            f"LEFT JOIN {before} b ON {_same('t', 'b', keys)}"
        )

    def _moved(self) -> list[str]:
        """Return the tests for rows that change because W moves: they close, or they leave."""
        closing = _rows(self.emission.table).closing
        before, after = self.emission.before_us, self.emission.after_us
        if not closing or after in (before, NEVER):
            return []
        shifts = [0]
        if self.emission.table.retention_us is not None:
            shifts.append(self.emission.table.retention_us)
        first = MIN_EDGE_US if before == NEVER else before
        return [closing.format(before=first - each, after=after - each) for each in shifts]

    def _take_images(self, when: str) -> None:
        image = _images(
            self.file, self.emission.table, touched=self._name("touched"), final=self.emission.final
        )
        try:
            self.file.run(f"CREATE TEMP TABLE {self._name(when)} AS {image}")
        except _ROW_FAULTS as error:
            raise _unreadable(self.emission.table, error) from error

    def _name(self, kind: str) -> str:
        return f"temp.__{kind}{self.number}"


def tell_all(file: DuckDBFile, emission: Emission) -> None:
    """Tell a new sink of every row that its view has. MergeFailed."""
    _tell_difference(file, emission, "SELECT '' AS __key, '' AS __row LIMIT 0")


def tell_swap(file: DuckDBFile, emission: Emission, before: str) -> None:
    """Tell a sink how a new version's rows differ from the images in table `before`."""
    _tell_difference(file, emission, f"FROM {before}")


def take_rows(file: DuckDBFile, table: Table, *, final: bool, into: str) -> None:
    """Keep the images of all rows of a version in a temporary table. MergeFailed."""
    image = _images(file, table, final=final)
    try:
        file.run(f"CREATE TEMP TABLE {into} AS SELECT __key, __row FROM ({image})")
    except _ROW_FAULTS as error:
        raise _unreadable(table, error) from error


def _tell_difference(file: DuckDBFile, emission: Emission, before: str) -> None:
    names = ("temp.__swap_before", "temp.__swap_after")
    file.run(f"CREATE TEMP TABLE {names[0]} AS SELECT __key, __row FROM ({before})")
    take_rows(file, emission.table, final=emission.final, into=names[1])
    _emit(file, emission, *names, ["__key"])
    for name in names:
        file.run(f"DROP TABLE {name}")


def forget_pending(file: DuckDBFile, sink: str) -> None:
    """Let go of what a sink was not told yet."""
    file.run(f"DROP TABLE IF EXISTS {_pending(sink)}")


def has_pending(file: DuckDBFile, sink: str) -> bool:
    """Whether a sink has a table of what it was not told yet."""
    found = file.rows(
        "FROM duckdb_tables() WHERE schema_name = 'headrace' AND table_name = ?",
        [f"{sink}__pending"],
    )
    return bool(found)


def _pending(sink: str) -> str:
    return physical(f"{sink}__pending")


def _rows(table: Table) -> Rows:
    assert table.rows is not None
    return table.rows


def _source(table: Table) -> str:
    return table.relation or physical(table.name)


def _names(rows: Rows) -> list[str]:
    return [f"__r{at}" for at in range(len(rows.keys))] or ["__r"]


def _renamed(rows: Rows) -> str:
    if not rows.keys:
        return "1 AS __r"  # a view without keys has one row
    return ", ".join(f"{quote(key)} AS __r{at}" for at, key in enumerate(rows.keys))


def _same(one: str, other: str, keys: Sequence[str]) -> str:
    return " AND ".join(f"{one}.{key} IS NOT DISTINCT FROM {other}.{key}" for key in keys)


def _images(file: DuckDBFile, table: Table, *, final: bool, touched: str | None = None) -> str:
    """Return a query for keys, key and row as JSON of all rows, or of those that are touched."""
    rows = _rows(table)
    source = f"{_source(table)} AS {GROUP}"
    if touched is not None:
        source = f"(SELECT * FROM {_source(table)}{_bounds(file, rows, touched)}) AS {GROUP}"
        matches = [
            f"{GROUP}.{quote(key)} IS NOT DISTINCT FROM x.__r{at}"
            for at, key in enumerate(rows.keys)
        ]
        source += f" SEMI JOIN {touched} AS x ON {' AND '.join(matches) or 'true'}"
    parts = [f"{text} AS __n{at}" for at, (_, text, _) in enumerate(rows.names)]
    columns = ", ".join([_renamed(rows), *parts, *table.shown])
    key = json_object([(name, f"__n{at}", type) for at, (name, _, type) in enumerate(rows.names)])
    members = [(name, quote(name), type) for name, type in (*rows.outputs, *_META)]
    closed = " WHERE _closed" if final else ""
    return (
        f"SELECT {', '.join(_names(rows))}, {key} AS __key, {json_object(members)} AS __row "
        f"FROM (SELECT {columns} FROM {source}{table.condition}){closed}"
    )


def _bounds(file: DuckDBFile, rows: Rows, touched: str) -> str:
    """Return a literal range for the time of what is touched: the store skips everything else."""
    if not rows.keys or rows.keys[0] not in _TIME_KEYS:
        return ""
    low, high = file.rows(
        f"SELECT CAST(min(__r0) AS VARCHAR), CAST(max(__r0) AS VARCHAR) FROM {touched}"
    )[0]
    if low is None:
        return " WHERE false"
    return f" WHERE {quote(rows.keys[0])} BETWEEN '{low}' AND '{high}'"


def _emit(
    file: DuckDBFile, emission: Emission, before: str, after: str, keys: Sequence[str]
) -> None:
    """Write what differs between two tables of images to be published, in the order of the keys.

    MergeFailed: a row is larger than a record may be.
    """
    _check_sizes(file, emission, after)
    changed = (
        f"SELECT coalesce(b.__key, a.__key) AS key, b.__row AS old, a.__row AS new "
        f"FROM {before} b FULL JOIN {after} a ON {_same('b', 'a', keys)} "
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


def _unreadable(table: Table, error: duckdb.Error) -> MergeFailed:
    return MergeFailed(
        f"view {table.view}: a row cannot be read to tell its sinks: {error}", view=table.view
    )
