"""A database in memory that reaches no file, no network and no setting, with one thread."""

import duckdb

__all__ = ["open_database"]


def open_database(**settings: str) -> duckdb.DuckDBPyConnection:
    """Open a database with some settings, none of which can be changed later."""
    database = duckdb.connect(
        config={"threads": 1, "async_threads": 0, "enable_external_access": False, **settings}
    )
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    database.execute("SET python_enable_replacements = false")
    database.execute("SET lock_configuration = true")
    return database
