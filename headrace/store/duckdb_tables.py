"""The SQL that makes, shows and merges physical tables in DuckDB."""

from headrace.plan.tables import Table, quote

__all__ = ["create", "merge", "physical", "show", "trim"]


def physical(table_name: str) -> str:
    """Return the qualified name of a physical table."""
    return f"headrace.{quote(table_name)}"


def create(table: Table) -> str:
    """Make the physical table unless it is there."""
    columns = ", ".join(f"{quote(column.name)} {column.type.duckdb}" for column in table.columns)
    return f"CREATE TABLE IF NOT EXISTS {physical(table.name)} ({columns})"


def trim(table: Table, delta: str) -> str:
    """Leave of the groups in a delta as many items as are kept: the first ones."""
    name = physical(table.name)
    groups = [quote(key.name) for key in table.keys[:-1]]  # the last is the item
    partition = f"PARTITION BY {', '.join(groups)} " if groups else ""
    here = " AND ".join(f"d.{group} IS NOT DISTINCT FROM o.{group}" for group in groups) or "true"
    return (
        f"DELETE FROM {name} WHERE rowid IN (SELECT place FROM (SELECT rowid AS place, "
        f"row_number() OVER ({partition}ORDER BY {quote(table.states[0].name)}) AS rank "
        f"FROM {name} AS o "
        f"WHERE EXISTS (FROM {delta} AS d WHERE {here})) WHERE rank > {table.keep})"
    )


def show(table: Table) -> str:
    """Give a table its public name: a swap is this one statement."""
    return f"CREATE OR REPLACE VIEW main.{quote(table.view)} AS {table.select}"


def merge(table: Table, delta: str) -> str:
    """Merge a delta, registered under a name, into the physical table."""
    names = [quote(column.name) for column in table.columns]
    if table.appends:
        return f"INSERT INTO {physical(table.name)} SELECT {', '.join(names)} FROM {delta}"
    # DuckDB turns IS NOT DISTINCT FROM into a hash join on the small delta, and the delta's
    # extremes into a filter on the scan: only the row groups of its windows are read.
    if table.relation or table.repeats:
        # A record that is late for some of its windows has a row of its own in the delta.
        groups = [quote(key.name) for key in table.keys]
        states = [
            f"{(c.combine or '').format(x=quote(c.name))} AS {quote(c.name)}" for c in table.states
        ]
        selected = ", ".join([*groups, *states])
        delta = f"(SELECT {selected} FROM {delta} GROUP BY {', '.join(groups)})"
    matches = [
        f"o.{quote(key.name)} IS NOT DISTINCT FROM n.{quote(key.name)}" for key in table.keys
    ]
    updates = [
        f"{quote(column.name)} = "
        + (column.merge or "").format(old=f"o.{quote(column.name)}", new=f"n.{quote(column.name)}")
        for column in table.states
    ]
    matched = f"WHEN MATCHED THEN UPDATE SET {', '.join(updates)} " if updates else ""
    return (
        f"MERGE INTO {physical(table.name)} AS o USING {delta} AS n "
        f"ON {' AND '.join(matches) or 'true'} {matched}"
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f'n.{name}' for name in names)})"
    )
