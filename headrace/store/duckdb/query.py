"""Answer queries from outside: one reading statement, tables only, limited in rows and in time.

Three fences, each enough for most of what they keep out:
1. Only statements that read are run, one at a time, in a read-only transaction. EXPLAIN is one if
   what it explains is one, because EXPLAIN ANALYZE runs it.
2. Of DuckDB's table functions those alone may be called that read nothing from outside. This one
   is needed too, because DuckDB lets a query read the file of its own database.
3. The store shuts out files, network and settings when it opens (`DuckDBFile.lock_down`).
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

import duckdb
import pyarrow as pa

from headrace.errors import QueryRefused, TableNotFound
from headrace.store.duckdb.errors import damage_of
from headrace.store.duckdb.limits import Limited, limited
from headrace.wording import counted

__all__ = ["BATCH_ROWS", "at_most", "check_query", "read_query", "reading", "translated_within"]

BATCH_ROWS = 10_000

# Behind white space and comments; no comment is taken for a part of the head (see `_explained`).
_EXPLAIN = re.compile(
    r"(?:\s|--[^\r\n]*[\r\n]|/\*.*?\*/)*+"
    r"(?P<head>EXPLAIN\b(?:\s+ANALY[ZS]E\b)?"
    r"(?:\s*\(\s*(?:ANALY[ZS]E|FORMAT)\b(?:[\w\s,]|'\w*'|\"\w*\")*\))?)",
    re.ASCII | re.DOTALL | re.IGNORECASE,
)
_NAME = re.compile(r"\w+")
_NO_LETTERS = re.compile(r"[^\x00-\x7f\w]")
_ALLOWED_TABLE_FUNCTIONS = {
    "duckdb_columns",
    "duckdb_functions",
    "duckdb_schemas",
    "duckdb_tables",
    "duckdb_types",
    "duckdb_views",
    "generate_series",
    "json_each",
    "json_tree",
    "pg_timezone_names",
    "pragma_table_info",
    "pragma_version",
    "range",
    "repeat",
    "repeat_row",
    "summary",
    "unnest",
    "version",
}
_REFUSED_FUNCTIONS = {"current_setting", "write_log"}


def read_query(
    connection: duckdb.DuckDBPyConnection, sql: str, *, max_rows: int | None, max_seconds: float
) -> pa.Table:
    """Answer one reading statement. QueryRefused: not one, it fails, or past its limits.

    TableNotFound: it names a table that is not there.
    """
    check_query(connection, sql)
    with translated_within(connection, max_seconds), reading(connection, sql) as reader:
        return pa.Table.from_batches(at_most(reader, max_rows), reader.schema)


def check_query(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return a text that is one reading statement of tables, what is explained in place of EXPLAIN.

    Other places of the text are where they were. QueryRefused: it is not such a statement.
    """
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise QueryRefused(
            f"the query is not valid Unicode: half of a surrogate pair stands alone at character "
            f"{error.start + 1}"
        ) from None
    asked = sql
    types = _types(connection, sql)
    if types == [duckdb.StatementType.EXPLAIN]:
        asked = _explained(sql)
        types = _types(connection, asked)
    if types != [duckdb.StatementType.SELECT]:
        raise QueryRefused(
            "only one reading statement is answered here (SELECT, FROM, WITH, VALUES, "
            "DESCRIBE, SHOW, or EXPLAIN of one of these); tables change through the log only: "
            "`headrace append`"
        )
    _check_functions(sql)
    return asked


def _types(connection: duckdb.DuckDBPyConnection, sql: str) -> list[duckdb.StatementType]:
    try:
        return [each.type for each in connection.extract_statements(sql)]
    except duckdb.Error as error:
        raise QueryRefused(f"the query cannot be parsed: {error}") from error


def _explained(sql: str) -> str:
    """Return the text with spaces in place of EXPLAIN and its options.

    DuckDB does not tell what an EXPLAIN explains, so it has to parse the rest by itself. However it
    reads comments, spaces never turn another statement into one that reads: the head begins and
    ends no comment, so that spaces within one change nothing.
    """
    found = _EXPLAIN.match(sql)
    if found is None:
        return sql
    return f"{sql[: found.start('head')]}{' ' * len(found['head'])}{sql[found.end('head') :]}"


@contextmanager
def reading(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[pa.RecordBatchReader]:
    """Read the answer of a checked query in batches; errors are DuckDB's own, or Arrow's."""
    with connection.sql(sql).to_arrow_reader(BATCH_ROWS) as reader:
        yield reader


def _check_functions(sql: str) -> None:
    if refused := sorted(_called(sql) & _closed_functions()):
        raise QueryRefused(
            f"{refused[0]}(...) is not answered here: a query reads the tables of this project, "
            f"no files, settings or other databases. `SHOW TABLES` lists what there is."
        )


@cache
def _closed_functions() -> frozenset[str]:
    # Asked of DuckDB and not written down, so that what a later release adds is shut out as well.
    with duckdb.connect(":memory:") as connection:
        known = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'table'"
        ).fetchall()
    return frozenset({name for (name,) in known} - _ALLOWED_TABLE_FUNCTIONS | _REFUSED_FUNCTIONS)


def _called(sql: str) -> set[str]:
    """Return every name that an opening parenthesis follows, in lower case.

    DuckDB takes some characters for white space when it parses, such as U+00A0, and its tokenizer
    takes them for letters. So the text is read both ways.
    """
    return _names_called(sql) | _names_called(_NO_LETTERS.sub(" ", sql))


def _names_called(sql: str) -> set[str]:
    text = sql.encode()
    tokens = duckdb.tokenize(sql)
    ends = [start for start, _ in tokens[1:]] + [len(text)]
    words = [
        text[start:end].decode().strip()
        for (start, kind), end in zip(tokens, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]
    # The last part of a word, which may be quoted: "read_blob", `read_blob`.
    return {
        parts[-1].lower()
        for word, following in pairwise(words)
        if following.startswith("(") and (parts := _NAME.findall(word))
    }


@contextmanager
def translated_within(
    connection: duckdb.DuckDBPyConnection, seconds: float, *, limit_seconds: float | None = None
) -> Iterator[None]:
    """End what the connection runs after some seconds; raise what fails as QueryRefused.

    They may be what is left of `limit_seconds`, which the refusal names.
    TableNotFound: a table that the query names is not there. StoreError: the store is damaged.
    """
    query: Limited | None = None
    try:
        with limited(connection, seconds) as query:
            yield
    # What fails after the first batch comes through Arrow, as OSError.
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if query is not None and query.expired:
            raise QueryRefused(
                f"the query took more than {limit_seconds or seconds:g} seconds and was ended; ask "
                f"for less at once"
            ) from error
        if isinstance(error, duckdb.InterruptException):
            raise QueryRefused(
                "the engine ended the query: a commit needed the memory, or the store was closed. "
                "Ask again, or for less at once."
            ) from error
        if isinstance(error, duckdb.PermissionException):
            raise QueryRefused(
                f"a query reads the tables of this project and nothing else: {error}"
            ) from error
        text = _without_stack(str(error))
        if damaged := damage_of(text):
            raise damaged from error
        if missing := re.search(r"Table with name (\S+) does not exist", text):
            raise TableNotFound(missing[1]) from error
        raise QueryRefused(f"the query fails: {text}") from error


def _without_stack(text: str) -> str:
    return re.split(r"\n+Stack trace", text, maxsplit=1, flags=re.IGNORECASE)[0]


def at_most(batches: Iterable[pa.RecordBatch], max_rows: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an answer. QueryRefused: it has more rows than allowed."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if max_rows is not None and rows > max_rows:
            raise QueryRefused(
                f"the answer has more than {counted(max_rows, 'row')}; add LIMIT {max_rows}, "
                f"or aggregate"
            )
        yield batch
