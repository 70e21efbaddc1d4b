"""The changes of a swap: how the rows of a new version differ from those of the one before it.

Where key and columns are the same they are the rows that differ, all in the new version's table.
Where they are not, all rows leave in the old version's table and all come in the new one's.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headrace.ledger.following import relation_of
from headrace.plan.tables import Table
from headrace.schema.relations import Relation
from headrace.store.duckdb.changes.differing import insert_differences
from headrace.store.duckdb.changes.images import images, take_images
from headrace.store.duckdb.changes.layout import (
    META,
    changes_table,
    columns_of,
    create_changes,
    rows_view,
)
from headrace.store.duckdb.changes.shown import ShownVersion, read_shown
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.reading import live

__all__ = ["ShownSwap", "begin_swaps", "end_swaps"]


@dataclass(frozen=True)
class ShownSwap:
    """A table that gets its public name, and the version that had it; `kept` has its rows."""

    table: Table
    before: ShownVersion | None
    kept: str
    is_followed: bool


def begin_swaps(
    file: DuckDBFile, tables: Sequence[Table], older: Sequence[Table], followed: Collection[str]
) -> list[ShownSwap]:
    """Return what changes with the public names of tables; the rows there are now are kept."""
    known = {(table.view, table.version): table for table in older}
    swaps = []
    for number, table in enumerate(tables):
        shown = read_shown(file.rows, table.view)
        if shown and shown[-1].version == table.version:
            continue
        before = shown[-1] if shown else None
        swap = ShownSwap(table, before, f"temp.__kept{number}", table.view in followed)
        if before is not None and swap.is_followed:
            _keep(file, before, known.get((before.view, before.version)), swap.kept)
        swaps.append(swap)
    return swaps


def end_swaps(file: DuckDBFile, swaps: Sequence[ShownSwap], commit: int) -> None:
    """Note which versions readers see now and, where views are followed, what changed."""
    for swap in swaps:
        table, relation = swap.table, relation_of(swap.table)
        same = swap.before is not None and swap.before.relation == relation
        if not swap.is_followed:
            file.run("DELETE FROM headrace.shown WHERE view = ?", [table.view])
        else:
            file.run(create_changes(_changes(table, commit), relation))
            _note(file, swap, commit, same=same)
        file.insert(
            "headrace.shown", [[table.view, table.version, commit, relation.to_json(), same]]
        )
        file.run(f"CREATE OR REPLACE VIEW {rows_view(table.view)} AS {images(live(table))}")


def _note(file: DuckDBFile, swap: ShownSwap, commit: int, *, same: bool) -> None:
    table, after = swap.table, f"{swap.kept}_after"
    take_images(file, live(table), after)
    if not same:
        _insert_all(file, _changes(table, commit), relation_of(table), after, commit, sign=1)
        if swap.before is not None:
            before = swap.before
            _insert_all(file, before.changes, before.relation, swap.kept, commit, sign=-1)
        return
    columns = list(columns_of(relation_of(table)))
    insert_differences(
        file,
        _changes(table, commit),
        swap.kept,
        after,
        keys=[column for column in columns if column.startswith("k")] or ["__r"],
        columns=columns,
        place=(commit, 0, 0),
    )
    for name in (swap.kept, after):
        file.run(f"DROP TABLE {name}")


def _keep(file: DuckDBFile, shown: ShownVersion, table: Table | None, into: str) -> None:
    """Make a table of the rows that readers see; without a plan, of the rows that they read."""
    if table is not None:
        take_images(file, live(table), into)
    else:
        file.run(f"CREATE TEMP TABLE {into} AS FROM {rows_view(shown.view)}")


def _changes(table: Table, commit: int) -> str:
    return changes_table(table.view, table.version, commit)


def _insert_all(
    file: DuckDBFile, changes: str, relation: Relation, images: str, commit: int, *, sign: int
) -> None:
    """Write that all rows come, or leave; the table of their images is dropped."""
    columns = ", ".join(columns_of(relation))
    order = ", ".join(f"k{at}" for at in range(len(relation.key))) or "1"
    file.run(
        f"INSERT INTO {changes} ({META}, {columns}) "
        f"SELECT {commit}, 0, row_number() OVER (ORDER BY {order}), {sign}, _closed, {columns} "
        f"FROM {images}"
    )
    file.run(f"DROP TABLE {images}")
