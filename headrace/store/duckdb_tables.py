"""The SQL that makes, shows and merges physical tables in DuckDB."""

from headrace.plan.tables import Table, quote

__all__ = ["create", "merge", "physical", "show"]


def physical(table_name: str) -> str:
    """Return the qualified name of a physical table."""
    return f"headrace.{quote(table_name)}"


def create(table: Table) -> str:
    """Make the physical table unless it is there."""
    columns = ", ".join(f"{quote(column.name)} {column.type.duckdb}" for column in table.columns)
    return f"CREATE TABLE IF NOT EXISTS {physical(table.name)} ({columns})"


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
    if table.relation:
        # A record that is late for some of its windows has a row of its own in the delta.
        groups = ", ".join(quote(key.name) for key in table.keys)
        states = ", ".join(
            f"{(c.combine or '').format(x=quote(c.name))} AS {quote(c.name)}" for c in table.states
        )
        delta = f"(SELECT {groups}, {states} FROM {delta} GROUP BY {groups})"
    matches = [
        f"o.{quote(key.name)} IS NOT DISTINCT FROM n.{quote(key.name)}" for key in table.keys
    ]
    updates = [
        f"{quote(column.name)} = "
        + (column.merge or "").format(old=f"o.{quote(column.name)}", new=f"n.{quote(column.name)}")
        for column in table.states
    ]
    return (
        f"MERGE INTO {physical(table.name)} AS o USING {delta} AS n "
        f"ON {' AND '.join(matches) or 'true'} "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(updates)} "
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f'n.{name}' for name in names)})"
    )
