"""Names in DuckDB: everything of ours is in the schema `headrace`."""

from headrace.plan.tables import ERRORS
from headrace.store.duckdb.quoting import quote

__all__ = ["GROUP", "errors_of", "physical", "quote", "watermark_of"]

#: The name of the view's own rows where a final looks up their items.
GROUP = "g"


def physical(table_name: str) -> str:
    """Return the qualified name of a physical table."""
    return f"headrace.{quote(table_name)}"


def errors_of(view: str) -> str:
    """Return the qualified name of the errors that readers of a view see."""
    return f"main.{quote(f'{view}.{ERRORS}')}"


def watermark_of(view: str, version: str) -> str:
    """Return SQL for W of a view, at the position of the reader; NULL for -infinity."""
    return (
        f"(SELECT watermark FROM headrace.watermarks "
        f"WHERE view = '{view}' AND version = '{version}')"
    )
