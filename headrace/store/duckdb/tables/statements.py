"""The SQL that makes, shows and merges physical tables in DuckDB."""

from collections.abc import Sequence

from headrace.plan.tables import Table
from headrace.store.duckdb.tables import merging
from headrace.store.duckdb.tables.names import errors_of, physical, quote
from headrace.store.duckdb.tables.reading import live
from headrace.time.placement import Forever

__all__ = [
    "create",
    "create_errors",
    "merge",
    "replace_rows",
    "replaces_rows",
    "show",
    "show_errors",
    "trim",
]

_MERGED = "temp.__merged"


def create(table: Table) -> str:
    """Make the physical table unless it is there."""
    every = [*table.columns, *(each.column for each in table.evaluated)]
    columns = ", ".join(f"{quote(column.name)} {column.type.duckdb}" for column in every)
    return f"CREATE TABLE IF NOT EXISTS {physical(table.name)} ({columns})"


def create_errors(table: Table) -> str:
    """Make the relation of a table's errors; the tables of its items have to be there."""
    assert table.errors_name is not None
    return f"CREATE OR REPLACE VIEW {physical(table.errors_name)} AS {live(table).errors}"


def trim(table: Table, delta: str) -> str:
    """Leave of the groups in a delta as many items as are kept: the first ones."""
    groups = _item_groups(table)
    partition = f"PARTITION BY {', '.join(groups)} " if groups else ""
    ranked = (
        f"SELECT rowid AS place, row_number() OVER ({partition}ORDER BY "
        f"{quote(table.values[0].name)}{' DESC' if table.keeps_greatest else ''}) AS rank "
        f"FROM {physical(table.name)} AS o "
        f"WHERE EXISTS (FROM {_full(table, delta, more_than=table.keep)} AS f "
        f"WHERE {_same_group(groups, 'f', 'o')})"
    )
    places = f"SELECT place FROM ({ranked}) WHERE rank > {table.keep}"
    return f"DELETE FROM {physical(table.name)} WHERE rowid IN ({places})"


def _item_groups(table: Table) -> list[str]:
    return [quote(key.name) for key in table.keys[:-1]]  # the last is the item


def _same_group(groups: Sequence[str], one: str, other: str) -> str:
    return " AND ".join(f"{one}.{g} IS NOT DISTINCT FROM {other}.{g}" for g in groups) or "true"


def _full(table: Table, delta: str, *, more_than: int | None) -> str:
    """Return the groups of a delta that have more items than that, and the last one's place."""
    groups = _item_groups(table)
    by = f"GROUP BY {', '.join(groups)} " if groups else ""
    last = f"{'min' if table.keeps_greatest else 'max'}({quote(table.values[0].name)})"
    return (
        f"(SELECT {', '.join([*groups, f'{last} AS last_place'])} "
        f"FROM {physical(table.name)} AS o "
        f"WHERE EXISTS (FROM {delta} AS d WHERE {_same_group(groups, 'd', 'o')}) "
        f"{by}HAVING count(*) > {more_than})"
    )


def _entering(table: Table, delta: str) -> str:
    """Return the rows of a delta that may be kept: in a full group, those before its last one.

    Else a group of many values would take rows in and throw them out again with every turn.
    """
    assert table.keep is not None
    same = _same_group(_item_groups(table), "f", "d")
    before = ">" if table.keeps_greatest else "<"
    return (
        f"(SELECT d.* FROM {delta} AS d LEFT JOIN "
        f"{_full(table, delta, more_than=table.keep - 1)} AS f ON {same} "
        f"WHERE f.last_place IS NULL OR d.{quote(table.values[0].name)} {before} f.last_place)"
    )


def show(table: Table) -> str:
    """Give a table its public name: a swap is this one statement, and the next."""
    return f"CREATE OR REPLACE VIEW main.{quote(table.view)} AS {live(table).select}"


def show_errors(table: Table) -> str:
    """Give the errors of a table their public name; where it has none, take that away."""
    errors = errors_of(table.view)
    if table.errors_name is None:
        return f"DROP VIEW IF EXISTS {errors}"
    return f"CREATE OR REPLACE VIEW {errors} AS FROM {physical(table.errors_name)}"


def replaces_rows(table: Table) -> bool:
    """Whether the rows of a delta may be anywhere in the table, and `replace_rows` is for them.

    Where rows stand in time, a delta touches the newest of them, and MERGE reads few others.
    """
    return isinstance(table.placement, Forever) and table.keep is None and bool(table.values)


def _each_once(table: Table, delta: str) -> str:
    """Return a delta with one row of each key."""
    groups = [quote(key.name) for key in table.keys]
    states = [
        f"{merging.combine(column, quote(column.name))} AS {quote(column.name)}"
        for column in table.values
    ]
    selected = ", ".join([*groups, *states])
    return f"(SELECT {selected} FROM {delta} GROUP BY {', '.join(groups)})"


def replace_rows(table: Table, delta: str) -> tuple[str, ...]:
    """Merge a delta by taking its keys' rows out and putting the merged ones in.

    It does what `merge` does, and costs a third of it where keys are spread over many rows: MERGE
    updates in place, column by column, in every row group that has one of them.
    """
    if table.newest is not None:
        # Splits of a partition are folded apart, and each may have a row of a key.
        delta = _each_once(table, delta)
    keys = [quote(key.name) for key in table.keys]
    matches = [f"o.{key} IS NOT DISTINCT FROM n.{key}" for key in keys]
    selected = ["o.rowid AS __place", *(f"n.{key}" for key in keys)]
    for column in table.values:
        name = quote(column.name)
        merged = merging.merge(column, f"o.{name}", f"n.{name}")
        selected.append(f"CASE WHEN o.rowid IS NULL THEN n.{name} ELSE {merged} END AS {name}")
    kept = [quote(each.name) for each in table.evaluated]
    selected += [f"o.{name}" for name in kept]
    columns = ", ".join([*keys, *(quote(column.name) for column in table.values), *kept])
    whole = physical(table.name)
    return (
        f"CREATE TEMP TABLE {_MERGED} AS SELECT {', '.join(selected)} FROM {whole} AS o "
        f"RIGHT JOIN {delta} AS n ON {' AND '.join(matches) or 'true'}",
        f"DELETE FROM {whole} USING {_MERGED} AS m WHERE {quote(table.name)}.rowid = m.__place",
        f"INSERT INTO {whole} ({columns}) SELECT {columns} FROM {_MERGED}",
        f"DROP TABLE {_MERGED}",
    )


def merge(table: Table, delta: str) -> str:
    """Merge a delta, registered under a name, into the physical table."""
    names = [quote(column.name) for column in table.columns]
    if table.placement.appends:
        return f"INSERT INTO {physical(table.name)} SELECT {', '.join(names)} FROM {delta}"
    # DuckDB turns IS NOT DISTINCT FROM into a hash join on the small delta, and the delta's
    # extremes into a filter on the scan: only the row groups of its windows are read.
    if table.newest is not None:
        delta = _each_once(table, delta)
    if table.placement.overlaps:
        # A record that is late for some of its windows has a row of its own in the delta.
        delta = _each_once(table, delta)
    if table.keep is not None:
        delta = _entering(table, delta)
    matches = [
        f"o.{quote(key.name)} IS NOT DISTINCT FROM n.{quote(key.name)}" for key in table.keys
    ]
    updates = [
        f"{quote(column.name)} = "
        + merging.merge(column, f"o.{quote(column.name)}", f"n.{quote(column.name)}")
        for column in table.values
    ]
    matched = f"WHEN MATCHED THEN UPDATE SET {', '.join(updates)} " if updates else ""
    return (
        f"MERGE INTO {physical(table.name)} AS o USING {delta} AS n "
        f"ON {' AND '.join(matches) or 'true'} {matched}"
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f'n.{name}' for name in names)})"
    )
