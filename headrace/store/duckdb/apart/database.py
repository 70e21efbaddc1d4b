"""A database in memory that reaches no file, no network and no setting, with one thread."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

__all__ = ["begin_reading", "one_question", "open_database"]


def open_database(**settings: str) -> duckdb.DuckDBPyConnection:
    """Open a database with some settings, none of which can be changed later."""
    database = duckdb.connect(
        config={"threads": 1, "async_threads": 0, "enable_external_access": False, **settings}
    )
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    database.execute("SET python_enable_replacements = false")
    database.execute("SET lock_configuration = true")
    return database


@contextmanager
def one_question(database: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session that cannot change the database, for one question.

    What belongs to a session ends with it: temporary tables, macros, variables, prepared
    statements, the seed of random().
    """
    with database.cursor() as session:
        begin_reading(session)
        yield session


def begin_reading(session: duckdb.DuckDBPyConnection) -> None:
    """Begin a transaction in which nothing can be written."""
    session.execute("BEGIN TRANSACTION READ ONLY")
