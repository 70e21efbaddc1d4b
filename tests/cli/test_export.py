"""`headrace export`: all rows of a view in a file, in every format, or no file at all.

Method: a store without an engine whose view has more rows than a query is answered with.
"""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from cli.commands import Run
from headrace.ledger.entries import MAIN, Progress
from headrace.model.canonical import to_canonical
from headrace.sql import parse_project
from headrace.store.base import MAX_ROWS
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.store.samples import (
    PARTITION_0,
    counts,
    delta,
    holding,
    planned,
    stream_holding,
    turn_of,
)

ROWS = MAX_ROWS + 1
DEFINITIONS = """
CREATE STREAM clicks (k STRING) WITH (topic = 'web.clicks', format = 'json');
CREATE MATERIALIZED VIEW hits AS SELECT k, count(*) AS n FROM clicks GROUP BY k;
"""


@pytest.fixture
def shop(project: Path) -> Path:
    store = DuckDBStore(project / ".headrace/store.duckdb")
    table = counts()
    epoch = store.begin_epoch()
    defined = parse_project({"clicks.sql": DEFINITIONS})
    forms = tuple(json.dumps(to_canonical(each)) for each in (*defined.views, *defined.streams))
    held = replace(holding(table), forms=forms)
    store.hold(epoch, [stream_holding(), held], {MAIN: {PARTITION_0: Progress()}})
    store.prepare(table)
    store.show(epoch, MAIN, [table])
    rows = [(f"card,{number:05}", 1, number, number, number) for number in range(ROWS)]
    store.commit(turn_of(planned(epoch, 1), {table: (delta(table, *rows),)}))
    store.close()
    return project


def read(file: Path) -> pa.Table:
    return (
        parquet.read_table(file) if file.suffix == ".parquet" else pa.ipc.open_file(file).read_all()
    )


@pytest.mark.parametrize("name", ["hits.parquet", "hits.arrow"])
def test_all_rows_are_written_with_their_types(shop: Path, headrace: Run, name: str) -> None:
    file = shop / name
    answer = headrace("export", "hits", "-o", file, "-p", shop)
    told = f"10,001 rows of hits at commit 2 (web.clicks/0@10) in {file}\n"
    assert (answer.code, answer.out) == (0, told)
    found = read(file)
    assert found.num_rows == ROWS
    assert str(found.schema.field("total").type) == "decimal128(38, 2)"
    assert sum(found["least"].to_pylist()) == sum(range(ROWS))
    assert found.schema.metadata[b"headrace.commit"] == b"2"
    assert sorted(each.name for each in shop.iterdir() if each.name.startswith(".")) == [
        ".gitignore",
        ".headrace",
    ]


def test_csv_is_as_of_headrace_sql(shop: Path, headrace: Run) -> None:
    file = shop / "rows"
    answer = headrace("export", "HITS", "--output", file, "--format", "csv", "-p", shop, "--json")
    assert answer.rows == [
        {
            "view": "hits",
            "rows": ROWS,
            "commit": 2,
            "position": "web.clicks/0@10",
            "file": str(file),
            "bytes": file.stat().st_size,
        }
    ]
    with file.open() as lines:
        rows = list(csv.reader(lines))
    assert rows[0] == ["k", "total", "least", "greatest", "_events", "_closed"]
    assert sorted(rows[1:])[0] == ["card,00000", "0.00", "0", "0", "1", "false"]
    assert len(rows) == ROWS + 1


def test_what_cannot_be_exported_leaves_no_file(shop: Path, headrace: Run) -> None:
    file = shop / "hits.parquet"
    file.write_text("as it was")
    before = sorted(shop.iterdir())
    answer = headrace("export", "hit", "-o", file, "-p", shop)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "error: there is no table hit (did you mean hits?); there are: hits\n"
    answer = headrace("export", "hits", "-o", shop / "hits.txt", "-p", shop)
    assert answer.code == 2
    assert "name it .parquet, .csv or .arrow, or give --format: parquet, csv, arrow" in answer.err
    answer = headrace("export", "hits", "-o", shop / "nowhere/hits.csv", "-p", shop)
    assert answer.code == 2
    assert "there is no folder" in answer.err
    assert sorted(shop.iterdir()) == before
    assert file.read_text() == "as it was"
