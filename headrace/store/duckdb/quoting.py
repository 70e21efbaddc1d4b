"""Identifiers in DuckDB's SQL. A file of its own: a process that answers queries loads little."""

__all__ = ["quote"]


def quote(name: str) -> str:
    """Return an identifier quoted."""
    return '"' + name.replace('"', '""') + '"'
