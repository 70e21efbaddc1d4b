"""Which versions there are and which unit maintains them: enter, set aside, join, forget.

Every function here writes within the caller's transaction, so a swap is seen whole or not at all.
"""

from collections.abc import Mapping, Sequence

from headrace.errors import StoreError
from headrace.ledger.entries import (
    MAIN,
    Holding,
    HoldingState,
    Manifest,
    Owner,
    Progress,
    SetAside,
    StreamPartition,
)
from headrace.plan.stages import Operator
from headrace.plan.tables import ERRORS
from headrace.store.duckdb.changes.following import forget_view
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.names import errors_of, physical, quote
from headrace.time.clocks import NEVER, Clock

__all__ = [
    "CLOCK",
    "clock_row",
    "drop_versions",
    "hold_versions",
    "join_main",
    "read_clock",
    "set_aside",
    "set_manifests",
    "set_progress",
    "set_watermarks",
]

#: The columns of a clock; NULL is -infinity.
CLOCK = "clock_us, watermark_us, delay_us, records_us"

_OF_OWNER = "kind = ? AND name = ? AND version = ?"


def clock_row(clock: Clock) -> list[int | None]:
    """Return a clock as the columns of CLOCK."""
    return [None if value == NEVER else value for value in clock]


def read_clock(row: Sequence[int | None]) -> Clock:
    """Return the clock that these columns of CLOCK say."""
    return Clock(*(NEVER if value is None else value for value in row))


def set_progress(
    file: DuckDBFile, unit: str, positions: Mapping[StreamPartition, Progress]
) -> None:
    """Note how far a unit has read, and its clocks there."""
    for stream in {key.stream for key in positions}:
        # Not an upsert: that takes twice the time, in every turn.
        file.run(
            "DELETE FROM headrace.progress "
            "WHERE unit = ? AND stream = ? AND list_contains(?, partition)",
            [unit, stream, [key.partition for key in positions if key.stream == stream]],
        )
    rows = [[unit, *key, place.offset, *clock_row(place.clock)] for key, place in positions.items()]
    file.insert("headrace.progress", rows)


def set_watermarks(file: DuckDBFile, watermarks: Mapping[Owner, int]) -> None:
    """Note W of some views."""
    if not watermarks:
        return
    # As one list: a pair of parameters for each of 16 views takes DuckDB a millisecond to plan. No
    # version has a space in it.
    names = [f"{owner.version} {owner.name}" for owner in watermarks]
    file.run(
        "DELETE FROM headrace.view_watermarks WHERE list_contains(?, version || ' ' || view)",
        [names],
    )
    rows = [
        [owner.name, owner.version, watermark_us]
        for owner, watermark_us in watermarks.items()
        if watermark_us != NEVER
    ]
    file.insert("headrace.view_watermarks", rows)


def set_manifests(file: DuckDBFile, unit: str, manifests: Mapping[Operator, Manifest]) -> None:
    """Note the runs of state that a unit keeps of some operators."""
    for operator, runs in manifests.items():
        file.run(
            "DELETE FROM headrace.manifests "
            "WHERE unit = ? AND operator = ? AND stream = ? AND version = ?",
            [unit, *operator],
        )
        rows = [
            [unit, *operator, run.file, *run.shards, run.rows, run.largest_clock_us, run.file_bytes]
            for run in runs
        ]
        file.insert("headrace.manifests", rows)


def hold_versions(
    file: DuckDBFile,
    holdings: Sequence[Holding],
    progress: Mapping[str, Mapping[StreamPartition, Progress]],
) -> None:
    """Enter versions and, for new units, where they begin to read."""
    for unit, positions in progress.items():
        _enter_unit(file, unit)
        # The main unit stays when its last version goes: what comes then knows no marker yet.
        file.run(
            "UPDATE headrace.units SET time_offset = 0, planned_epoch = NULL, "
            "planned_ranges = NULL WHERE unit = ?",
            [unit],
        )
        set_progress(file, unit, positions)
    for holding in holdings:
        file.run(f"DELETE FROM headrace.holdings WHERE {_OF_OWNER}", holding.owner)
        row = [list(each) if isinstance(each, tuple) else each for each in vars(holding).values()]
        file.insert("headrace.holdings", [row])


def set_aside(file: DuckDBFile, unit: str, aside: SetAside) -> None:
    """Move a view to a unit of its own, at the position where the turn began.

    Called before the turn's own progress is noted: that position is still in the ledger.
    """
    own = f"view:{aside.view}@{aside.version}"
    view = Owner("view", aside.view, aside.version)
    if unit != own:
        _enter_unit(file, own)
        file.run(
            "UPDATE headrace.units SET time_offset = "
            "(SELECT time_offset FROM headrace.units WHERE unit = ?) WHERE unit = ?",
            [unit, own],
        )
        held = file.rows(f"SELECT inputs FROM headrace.holdings WHERE {_OF_OWNER}", view)
        for stream in held[0][0]:
            _copy_progress(file, unit, own, stream)
    file.run(
        f"UPDATE headrace.holdings SET unit = ?, state = ?, reason = ? WHERE {_OF_OWNER}",
        [own, aside.state, aside.reason, *view],
    )


def join_main(file: DuckDBFile, unit: str) -> None:
    """Pass a unit's versions to the main one; those of the same names are dropped.

    A stream that it brings takes the main unit's views over the old one with it.
    StoreError: the units do not stand at the same position, so a reader would see two.
    """
    _check_level(file, unit)
    file.run(
        "UPDATE headrace.units SET time_offset = "
        "(SELECT max(time_offset) FROM headrace.units WHERE unit IN (?, ?)) WHERE unit = ?",
        [unit, MAIN, MAIN],
    )
    replaced = file.rows(
        "SELECT kind, name, version, unit FROM headrace.holdings WHERE unit <> ? "
        "AND ((kind, name) IN (SELECT (kind, name) FROM headrace.holdings WHERE unit = ?) "
        "OR (kind = 'view' AND unit = ? AND list_has_any(inputs, "
        "(SELECT list(name) FROM headrace.holdings WHERE unit = ? AND kind = 'stream'))))",
        [unit, unit, MAIN, unit],
    )
    for kind, name, version, old_unit in replaced:
        _drop(file, Owner(kind, name, version), old_unit)
    for (stream,) in file.rows(
        "SELECT DISTINCT stream FROM headrace.progress WHERE unit = ?", [unit]
    ):
        _copy_progress(file, unit, MAIN, stream)
    file.run(
        "UPDATE headrace.holdings SET unit = ?, state = ?, reason = '' WHERE unit = ?",
        [MAIN, HoldingState.LIVE, unit],
    )
    _forget_empty_units(file)


def drop_versions(file: DuckDBFile, holdings: Sequence[Holding]) -> None:
    """Forget versions, their tables, counters and seeds, and the units that are left empty."""
    for holding in holdings:
        _drop(file, holding.owner, holding.unit)
    _forget_empty_units(file)


def _enter_unit(file: DuckDBFile, unit: str) -> None:
    file.run(
        "INSERT INTO headrace.units VALUES (?, 0, 0, 0, NULL, NULL) ON CONFLICT DO NOTHING", [unit]
    )


def _copy_progress(file: DuckDBFile, unit: str, other: str, stream: str) -> None:
    file.run("DELETE FROM headrace.progress WHERE unit = ? AND stream = ?", [other, stream])
    file.run(
        f"INSERT INTO headrace.progress SELECT ?, stream, partition, next_offset, {CLOCK} "
        "FROM headrace.progress WHERE unit = ? AND stream = ?",
        [other, unit, stream],
    )
    # With the position goes what was remembered there.
    file.run("DELETE FROM headrace.manifests WHERE unit = ? AND stream = ?", [other, stream])
    file.run(
        "INSERT INTO headrace.manifests SELECT ?, * EXCLUDE (unit) FROM headrace.manifests "
        "WHERE unit = ? AND stream = ?",
        [other, unit, stream],
    )


def _check_level(file: DuckDBFile, unit: str) -> None:
    # A stream that the unit brings replaces the main unit's, position and all.
    # A partition that was added to a topic has no row of the main unit until that takes a turn.
    of_unit = "SELECT stream, partition, next_offset FROM headrace.progress WHERE unit = ?"
    apart = file.rows(
        "SELECT stream, partition, coalesce(u.next_offset, 0) AS mine, "
        "coalesce(m.next_offset, 0) AS its "
        f"FROM ({of_unit}) u FULL JOIN ({of_unit}) m USING (stream, partition) "
        "WHERE mine <> its "
        "AND stream IN (SELECT stream FROM headrace.progress WHERE unit = ?) "
        "AND stream IN (SELECT stream FROM headrace.progress WHERE unit = ?) "
        "AND stream NOT IN "
        "(SELECT name FROM headrace.holdings WHERE unit = ? AND kind = 'stream')",
        [unit, MAIN, unit, MAIN, unit],
    )
    if apart:
        stream, partition, offset, main_offset = apart[0]
        raise StoreError(
            f"unit {unit} stands at {stream}/{partition}@{offset} and the main unit at "
            f"@{main_offset}, so it was not swapped in. Turn it until it is level."
        )


def _drop(file: DuckDBFile, owner: Owner, unit: str) -> None:
    for table in ("holdings", "counters"):
        file.run(f"DELETE FROM headrace.{table} WHERE {_OF_OWNER}", owner)
    if owner.kind == "view":
        gone = "DELETE FROM headrace.view_watermarks WHERE view = ? AND version = ?"
        file.run(gone, [owner.name, owner.version])
        name = quote(owner.name)
        left = "FROM headrace.holdings WHERE kind = 'view' AND name = ?"
        if not file.rows(left, [owner.name]):
            file.run(f"DROP VIEW IF EXISTS main.{name}")
            file.run(f"DROP VIEW IF EXISTS {errors_of(owner.name)}")
            forget_view(file, owner.name)
        table = f"{owner.name}__{owner.version}"
        file.run(f"DROP VIEW IF EXISTS {physical(f'{table}__{ERRORS}')}")
        tables = file.rows(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'headrace' "
            "AND regexp_replace(table_name, '__items_a[0-9]+$', '') = ?",
            [table],
        )
        for (found,) in tables:
            file.run(f"DROP TABLE {physical(found)}")
    else:
        file.run(
            "DELETE FROM headrace.seeds WHERE stream = ? AND version = ?",
            [owner.name, owner.version],
        )
        for table in ("progress", "manifests"):
            file.run(
                f"DELETE FROM headrace.{table} WHERE unit = ? AND stream = ?", [unit, owner.name]
            )


def _forget_empty_units(file: DuckDBFile) -> None:
    empty = file.rows(
        "SELECT unit FROM headrace.units WHERE unit <> ? "
        "AND unit NOT IN (SELECT unit FROM headrace.holdings)",
        [MAIN],
    )
    for (unit,) in empty:
        for table in ("progress", "manifests", "units", "turns"):
            file.run(f"DELETE FROM headrace.{table} WHERE unit = ?", [unit])
