"""DuckDB as a calculator over Arrow tables: in memory, without files, network or threads.

A database takes 25 ms to open and a connection of it 5 µs, so a process has one database for all.
What is registered, and what is made TEMP, is seen by its own connection only.

To plan a query of some joins takes 4 ms and to run it over a few rows 1.5 ms, so `calculate` keeps
plans. DuckDB 2.0.0 does so for Arrow tables; a query over tables of its own is planned every time.
"""

import atexit
import os
import threading
import warnings
from collections.abc import Mapping
from functools import lru_cache

import duckdb
import pyarrow as pa

__all__ = ["Feed", "calculate", "connect", "parse", "parse_anew"]

MAX_PLANS = 256  # that are kept, each with a connection of its own
MAX_PARSED = 1_024  # statements that are kept

# `connection.sql`, which DuckDB advises, plans a statement twice. That costs more than a copy of a
# few rows, and `calculate` and `DuckDBFile.few` are for few.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection for one thread at a time. Times without a zone are in UTC to it."""
    return _database(os.getpid()).cursor()


@lru_cache(maxsize=1)
def _database(_process: int) -> duckdb.DuckDBPyConnection:
    """Open the database of this process; that of a parent must not be used after a fork."""
    database = duckdb.connect(config={"threads": 1, "enable_external_access": False})
    database.execute("SET GLOBAL TimeZone = 'UTC'")
    return database


class Feed:
    """What a registered name stands for now: to register each table anew costs 0.7 ms."""

    def __init__(self, name: str, table: pa.Table) -> None:
        self.name = name
        self.table = table

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def calculate(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the answer to a query over Arrow tables, by their names; safe for several threads.

    For a text that comes often: what differs from call to call belongs into the tables.
    """
    schemas = tuple((name, table.schema) for name, table in tables.items())
    return _planned(os.getpid(), sql, schemas).run(tables)


class _Planned:
    """A query that was planned, over names that stand for other tables each time."""

    def __init__(self, sql: str, schemas: tuple[tuple[str, pa.Schema], ...]) -> None:
        self._lock = threading.Lock()
        self._connection = connect()
        self._feeds = {name: Feed(name, schema.empty_table()) for name, schema in schemas}
        for name, feed in self._feeds.items():
            self._connection.register(name, feed)
        self._connection.execute(f"PREPARE planned AS {sql}")

    def run(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        with self._lock:
            try:
                for name, table in tables.items():
                    self._feeds[name].table = table
                return self._connection.execute("EXECUTE planned").to_arrow_table()
            finally:
                for feed in self._feeds.values():
                    feed.table = feed.table.slice(0, 0)


def parse_anew(sql: str) -> duckdb.Statement:
    """Return one statement, parsed: any connection of any database can run it, many times."""
    [statement] = connect().extract_statements(sql)
    return statement


@lru_cache(maxsize=MAX_PARSED)
def parse(sql: str) -> duckdb.Statement:
    """Do the same, and keep it. For the engine's own statements."""
    return parse_anew(sql)


@lru_cache(maxsize=MAX_PLANS)
def _planned(_process: int, sql: str, schemas: tuple[tuple[str, pa.Schema], ...]) -> _Planned:
    return _Planned(sql, schemas)


# DuckDB complains of connections and statements that are left when the process ends.
atexit.register(_planned.cache_clear)
atexit.register(parse.cache_clear)
