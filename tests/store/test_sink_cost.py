"""What changes cost a turn goes by the rows that the turn touches, not by those there are.

Method: a turn after a long history and one after twice as much; DuckDB says how many rows it read.
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.ledger.following import relation_of
from headrace.model.graph import aggregate_of
from headrace.plan.states import grouped_table, plain_table
from headrace.plan.tables import Table
from headrace.schema.types import parse_type
from headrace.sql import parse_project
from headrace.store.duckdb.changes.layout import changes_table, create_changes
from headrace.store.duckdb.changes.making import ChangeMaker
from headrace.store.duckdb.file import DuckDBFile, Parameters
from headrace.store.duckdb.schema import SCHEMA
from headrace.store.duckdb.tables.statements import create
from headrace.time.clocks import NEVER

STREAM = "CREATE STREAM clicks (k STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts);"
STRING, BIGINT, TIMESTAMP = map(parse_type, ("STRING", "BIGINT", "TIMESTAMP"))
ROW_GROUP = 122_880
CHANGES = changes_table("v", "1", 0)


class CountingFile(DuckDBFile):
    """A file that counts the rows which are read to make others."""

    scanned = 0

    def run(self, sql: str, parameters: Parameters = ()) -> None:
        if not sql.startswith(("CREATE TEMP TABLE", "INSERT", "DELETE")):
            super().run(sql, parameters)
            return
        self._count(sql, parameters)

    def few(self, sql: str, parameters: Parameters = ()) -> pa.Table:
        self._count(sql, parameters)
        return super().few(sql, parameters)

    def _count(self, sql: str, parameters: Parameters = ()) -> None:
        [(_, plan)] = self.rows(f"EXPLAIN (ANALYZE, FORMAT json) {sql}", parameters)
        self.scanned += json.loads(plan)["query"]["total_rows_scanned"]


def table_of(query: str) -> Table:
    text = f"{STREAM} CREATE MATERIALIZED VIEW v AS {query};"
    [view] = parse_project({"test.sql": text}).views
    if aggregate_of(view.query) is None:
        return plain_table(view, "1", {"o0": STRING})
    outputs = {"o0": STRING, "o1": BIGINT}
    parts = {"__part0": STRING, "__part1": BIGINT}
    return grouped_table(view, "1", {"k0": STRING}, outputs | parts)


def rows_read(folder: Path, table: Table, history: str, delta: str, groups: int) -> int:
    """Return how many rows are read to make the changes of a turn after so much history."""
    schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
    history, delta = (
        each.format(count=f"{groups * ROW_GROUP}::BIGINT") for each in (history, delta)
    )
    file = CountingFile(folder / f"{table.name}{groups}.duckdb")
    with file.transaction():
        for statement in SCHEMA:
            file.run(statement)
        file.run(create(table))
        file.run(create_changes(CHANGES, relation_of(table)))
        file.run(f'INSERT INTO headrace."{table.name}" {history}')
        file.scanned = 0
        rows = [dict(zip(schema.names, row, strict=True)) for row in file.rows(delta)]
        maker = ChangeMaker(file, table, CHANGES, (NEVER, 0), 1)
        maker.look([pa.Table.from_pylist(rows, schema)])
        maker.close()
        maker.finish()
    file.close()
    return file.scanned


@pytest.mark.parametrize(
    ("query", "history", "delta"),
    [
        pytest.param(
            "SELECT k FROM clicks",
            "SELECT 0, i, 'a' FROM range({count}) t(i)",
            "SELECT 0, {count} + i, 'a' FROM range(10) t(i)",
            id="plain",
        ),
        pytest.param(
            "SELECT k, count(*) AS n FROM clicks GROUP BY session_window(ts, '10 seconds'), k",
            "SELECT make_timestamptz(i * 20000000), make_timestamptz(i * 20000000), 'a', 1, 1 "
            "FROM range({count}) t(i)",
            "SELECT make_timestamptz(({count} - 1) * 20000000 + 1), make_timestamptz(({count} - 1)"
            " * 20000000 + 1), 'a', 1, 1",
            id="sessions",
        ),
        pytest.param(
            "SELECT k, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute'), k",
            "SELECT make_timestamptz(i * 60000000), 'a', 1, 1 FROM range({count}) t(i)",
            "SELECT make_timestamptz(({count} - 1) * 60000000), 'a', 1, 1",
            id="tumbling",
        ),
    ],
)
def test_a_longer_history_costs_changes_nothing(
    tmp_path: Path, query: str, history: str, delta: str
) -> None:
    table = table_of(query)
    short, long = (rows_read(tmp_path, table, history, delta, groups) for groups in (2, 4))
    assert long <= short + ROW_GROUP // 2, "rows that the turn does not touch were read"
