"""What a prompt needs to know of DuckDB's SQL: where statements end, which words and names it has.

Statements are told apart by DuckDB's own reading of the text.
"""

import duckdb

from headrace import scratch
from headrace.errors import QueryRefused

__all__ = ["COLUMNS_QUERY", "QUERY_WORDS", "is_whole", "split_statements"]

#: The columns of all tables that readers see: table, column, type.
COLUMNS_QUERY = (
    "SELECT table_name, column_name, data_type FROM duckdb_columns() "
    "WHERE NOT internal AND schema_name = 'main' ORDER BY table_name, column_index"
)
#: Words to offer to somebody who writes a query; not all that there are.
QUERY_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT JOIN"),
    *("ON", "USING", "AS", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS NULL", "DISTINCT"),
    *("DESC", "WITH", "UNION ALL", "CASE", "WHEN", "THEN", "ELSE", "END", "INTERVAL", "CAST"),
    *("EXPLAIN", "DESCRIBE", "SHOW TABLES", "SUMMARIZE", "EXCLUDE", "FILTER", "QUALIFY", "OVER"),
)


def split_statements(sql: str) -> list[str]:
    """Return the statements of a text, none of one that has only comments. QueryRefused."""
    try:
        with scratch.connect() as connection:
            return [each.query.strip() for each in connection.extract_statements(sql)]
    except duckdb.Error as error:
        raise QueryRefused(f"the text cannot be parsed: {error}") from error


def is_whole(sql: str) -> bool:
    """Tell whether a text ends with the semicolon of a statement: not in quotes or comments."""
    text = sql.encode()
    tokens = [
        (start, kind) for start, kind in duckdb.tokenize(sql) if kind != duckdb.token_type.comment
    ]
    if not tokens:
        return False
    start, kind = tokens[-1]
    return kind == duckdb.token_type.operator and text[start : start + 1] == b";"
