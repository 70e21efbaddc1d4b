"""The table of changes beside the state of a version: `<view>__<version>__changes_<since>`.

`since` is the commit from which on readers see the version: one may come back.

| column | what it is |
|---|---|
| `_commit` | the number of the commit |
| `_step` | 0; 1 where retention takes a row that this very commit closed |
| `_row` | its place among the changes of the commit, from 1 |
| `_sign` | -1 the row leaves, +1 it comes, 0 it is closed and otherwise the same |
| `_closed` | whether the row is closed |
| `k0`, ... | what sinks name rows by: the parts of the key |
| `c0`, ... | the declared columns |

An updated row is a -1 and a +1 of one commit. A table that is private to a new sink is the same.
"""

from headrace.schema.relations import Relation
from headrace.store.duckdb.tables.names import physical

__all__ = ["META", "changes_table", "columns_of", "create_changes", "first_table", "rows_view"]

META = "_commit, _step, _row, _sign, _closed"

_META_TYPES = "_commit BIGINT, _step TINYINT, _row BIGINT, _sign TINYINT, _closed BOOLEAN"


def changes_table(view: str, version: str, since: int) -> str:
    """Return the qualified name of the changes of a version that readers see since a commit."""
    return physical(f"{view}__{version}__changes_{since}")


def rows_view(view: str) -> str:
    """Return the qualified name of a view's rows with these columns, as readers see them now."""
    return physical(f"{view}__rows")


def first_table(topic: str) -> str:
    """Return the qualified name of the rows that the sink of a topic gets before all changes."""
    # Topics are told apart by case, and tables of DuckDB are not.
    return physical(f"__first_{topic.encode().hex()}")


def columns_of(relation: Relation) -> dict[str, str]:
    """Return the columns behind META with their types."""
    key = {f"k{at}": each.type.duckdb for at, each in enumerate(relation.key)}
    return key | {f"c{at}": each.type.duckdb for at, each in enumerate(relation.columns)}


def create_changes(name: str, relation: Relation) -> str:
    """Return the statement that makes a table of changes unless it is there."""
    columns = [f"{column} {type}" for column, type in columns_of(relation).items()]
    return f"CREATE TABLE IF NOT EXISTS {name} ({', '.join([_META_TYPES, *columns])})"
