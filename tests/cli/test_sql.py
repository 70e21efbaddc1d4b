"""`headrace sql`: statements from anywhere, in every format; who asks for a stream is told more.

Method: a store without an engine, whose ledger holds real definitions and whose tables are empty.
"""

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from cli.commands import Run
from headrace.cli.text.plans import plan_text
from headrace.engine.versions.changes import decide_changes
from headrace.ledger.entries import MAIN
from headrace.ledger.following import Followers, SinkEntry
from headrace.log import EmbeddedLog
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.log.suite import rows

DEFINITIONS = """
CREATE STREAM clicks (page STRING, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts)
WITH (topic = 'web.clicks', format = 'json');
CREATE STREAM quiet (x INT) WITH (topic = 'quiet', format = 'json');
CREATE STREAM shouted WITH (topic = 'shouted') AS SELECT upper(page) AS page, ts FROM clicks;
CREATE MATERIALIZED VIEW hits AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
CREATE MATERIALIZED VIEW pages AS SELECT page, max(ts) AS last FROM clicks GROUP BY page;
CREATE SINK told FROM hits WITH (topic = 'hits-out');
"""


@pytest.fixture
def site(project: Path) -> Path:
    """Return a project whose engine knew its definitions and ended before any table was shown."""
    (project / "payments.sql").write_text(DEFINITIONS)
    store = DuckDBStore(project / ".headrace/store.duckdb")
    changes = decide_changes(parse_project({"payments.sql": DEFINITIONS}), [])
    epoch = store.begin_epoch()
    store.hold(epoch, changes.enter, {MAIN: {}})
    told = SinkEntry("told", "hits", "hits-out", "upsert")
    store.set_followers(epoch, Followers((told,)), {})
    store.close()
    return project


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "FROM clicks",
            "clicks is a stream: its records are read from the topic web.clicks, and are no table. "
            "Ask a view that reads it: hits, pages. `headrace tail web.clicks` shows the records.",
        ),
        (
            "SELECT * FROM quiet JOIN hits USING (x)",
            "quiet is a stream: its records are read from the topic quiet, and are no table. "
            "No view reads it. `headrace tail quiet` shows the records.",
        ),
        (
            "FROM Shouted",
            "shouted is a stream: its records are written to the topic shouted, and are no table. "
            "No view reads it. `headrace tail shouted` shows the records.",
        ),
        (
            "FROM hits",
            "the view hits has no table yet: it is being built from the log. "
            "`headrace status hits` shows how far it is.",
        ),
        (
            "FROM told",
            "told is a sink: it writes the changes of the view hits to the topic hits-out. "
            "Ask the view: FROM hits",
        ),
        ("FROM hit", "there is no table hit (did you mean hits?); there are: hits, pages"),
    ],
)
def test_a_name_that_is_no_table_is_explained(
    site: Path, headrace: Run, query: str, told: str
) -> None:
    answer = headrace("sql", query, "-p", site)
    assert (answer.code, answer.err) == (2, f"error: {told}\n")


QUERIES = """
-- a comment with a ; in it
SELECT 1234567 AS number, 'a;b' AS text, NULL AS nothing, INTERVAL '26:00:01.5' AS span;
SELECT DATE '2026-01-01' + INTERVAL 1 MONTH - DATE '2026-01-01' AS month WHERE false
"""
SHOWN = """\
 number  text  nothing  span
──────────────────────────────────
1234567  a;b   NULL     26:00:01.5

month
─────
no rows
"""


def test_the_statements_of_a_file_are_answered_one_after_the_other(
    site: Path, headrace: Run, tmp_path: Path
) -> None:
    file = tmp_path / "queries.sql"
    file.write_text("\ufeff" + QUERIES.replace("\n", "\r\n"))
    assert headrace("sql", "-f", file, "-p", site).out == SHOWN
    rows = headrace("sql", "-f", file, "--json", "-p", site).rows
    assert rows == [{"number": 1234567, "text": "a;b", "nothing": None, "span": "26:00:01.5"}]
    answer = headrace("sql", "-f", file, "--format", "csv", "-p", site)
    assert answer.code == 2
    assert "2 statements, and --format csv takes one" in answer.err


@pytest.mark.parametrize("arguments", [(), ("-f", "-")])
def test_statements_come_through_standard_input(
    site: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(QUERIES.encode())))
    assert headrace("sql", *arguments, "-p", site).out == SHOWN


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"-- nothing", 'there is no statement; write one: "SHOW TABLES"'),
        (b"SELECT '\xff'", "byte 8 is not UTF-8: save it as UTF-8"),
        (b"SELECT 1; SELEC 2", "the text cannot be parsed: Parser Error"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_asked_is_refused(
    site: Path, headrace: Run, tmp_path: Path, text: bytes | None, told: str
) -> None:
    file = tmp_path / "queries.sql"
    if text is not None:
        file.write_bytes(text)
    answer = headrace("sql", "-f", file, "-p", site)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert headrace("sql", "SELECT 1", "-f", file, "-p", site).code == 2


def test_parquet_keeps_the_types(
    site: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT 1::SMALLINT AS a, 2.50::DECIMAL(9,2) AS b, TIMESTAMPTZ '2026-01-01 00:00Z' AS c"
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written))
    assert headrace("sql", query, "--format", "parquet", "-p", site).code == 0
    table = pyarrow.parquet.read_table(io.BytesIO(written.getvalue()))
    assert [str(field.type) for field in table.schema][:2] == ["int16", "decimal128(9, 2)"]
    assert str(table.schema.field("c").type).startswith("timestamp[us, tz=")
    assert (table["a"].to_pylist(), table["b"].to_pylist()) == ([1], [Decimal("2.50")])


def test_parquet_says_what_to_write_instead_of_an_interval(site: Path, headrace: Run) -> None:
    answer = headrace("sql", "SELECT INTERVAL 1 DAY AS span", "--format", "parquet", "-p", site)
    assert (answer.code, answer.err) == (
        2,
        "error: span: Parquet has no intervals here; write CAST(span AS VARCHAR), or its seconds: "
        "epoch(span)\n",
    )


PLAN = """\
Hash Join
    Join Type: INNER
    Conditions: unit = units.unit
    about 0 rows
  Projection
      Projections: unit
      about 1 row
"""


def test_a_plan_is_an_indented_tree_that_is_not_cut(
    site: Path, headrace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined = "EXPLAIN FROM headrace.units AS a JOIN headrace.progress AS b ON a.unit = b.unit"
    columns = ", ".join(f"turn + {n} AS turn_and_{n}" for n in range(12))
    monkeypatch.setattr("headrace.cli.sql.table_width", lambda: 80)
    for query in (joined, f"explain\nSELECT {columns} FROM headrace.units"):
        out = headrace("sql", query, "-p", site).out
        assert max(map(len, out.splitlines())) <= 80
        assert "…" not in out
        assert not set(out) & set("╭│╰")
    assert "turn_and_11" in out
    lines = out.splitlines()
    assert lines[0] == "Projection"
    assert lines[1].startswith("    Projections: turn_and_0, turn_and_1,")
    assert lines[2].startswith("      ")  # it goes on in the next line
    # Who asks for a drawing gets it.
    drawn = headrace("sql", "EXPLAIN (FORMAT text) SELECT 42 AS answer", "-p", site).out
    assert drawn.startswith("╭─ Projection ")


def test_a_plan_that_is_made_of_others_is_shown_whole() -> None:
    plan = [
        {
            "name": "HASH_JOIN ",
            "extra_info": {
                "Join Type": "INNER",
                "Conditions": ["unit = units.unit"],
                "Empty": "",
                "Estimated Cardinality": "0",
            },
            "children": [
                {
                    "name": "PROJECTION",
                    "extra_info": {"Projections": "unit", "Estimated Cardinality": "1"},
                    "children": [],
                }
            ],
        }
    ]
    assert plan_text(json.dumps(plan), 80) + "\n" == PLAN


def test_columns_of_one_name_are_not_lost(site: Path, headrace: Run) -> None:
    query = "SELECT 1 AS minute, 2 AS n, 3 AS minute"
    for options in (("--json",), ("--format", "parquet")):
        answer = headrace("sql", query, *options, "-p", site)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err == "error: two columns are named minute; name them with AS\n"
    assert headrace("sql", query, "--format", "csv", "-p", site).out == "minute,n,minute\n1,2,3\n"
    assert headrace("sql", query, "-p", site).out.split()[:3] == ["minute", "n", "minute"]


@pytest.mark.parametrize("columns", ["t", "n, t", "t, u"])
def test_csv_tells_null_from_empty_text_and_append_reads_it_back(
    site: Path, headrace: Run, columns: str
) -> None:
    values = """(1, '', 'a,b'), (2, NULL, 'c "d"'), (3, 'x', NULL), (4, E'two\\nlines', '')"""
    query = f"SELECT {columns} FROM (VALUES {values}) AS v (n, t, u) ORDER BY n"
    asked = headrace("sql", query, "--format", "csv", "-p", site)
    assert asked.code == 0, asked.err
    if columns == "n, t":
        assert asked.out == 'n,t\n1,""\n2,\n3,x\n4,"two\nlines"\n'
    (site / "answer.csv").write_text(asked.out)
    arguments = ("append", "back", site / "answer.csv", "--create", "--partitions", 1, "-p", site)
    assert headrace(*arguments).code == 0
    wanted = [
        {name: None if cell is None else str(cell) for name, cell in row.items()}
        for row in headrace("sql", query, "--json", "-p", site).rows
    ]
    assert [json.loads(row["value"]) for row in topic_rows(site, "back")] == wanted


def topic_rows(site: Path, topic: str) -> list[dict[str, Any]]:
    log = EmbeddedLog(site / ".headrace/log")
    found = [row for place in log.extents(topic) for row in rows(log, place)]
    log.close()
    return found
