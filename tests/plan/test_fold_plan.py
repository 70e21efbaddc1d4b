"""The plan of a fold: what it reads, what it refuses, and the very text that Spark runs.

Method: plans made from hand-written types need no Spark; the texts of some are kept in golden/
(`HEADRACE_GOLDEN=write pytest tests/plan` writes them anew, to be reviewed). Spark then plans and
runs folds of every shape over one record, and DuckDB runs what readers select.
"""

import os
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.engine.spark.analysis import plan_view
from headrace.engine.spark.session import start_spark
from headrace.errors import DefinitionError
from headrace.ledger.definitions import hold_view
from headrace.ledger.entries import MAIN
from headrace.model.definitions import Stream, View
from headrace.model.nodes import (
    Aggregate,
    Call,
    Filter,
    Named,
    Node,
    Project,
    Scan,
    Window,
    call_column,
    key_column,
)
from headrace.model.scalars import Scalar
from headrace.plan.columns import columns_read
from headrace.plan.explain import Explanation, explain_view
from headrace.plan.explain_text import explanation_text
from headrace.plan.fold import INPUT_COLUMNS, plan_fold
from headrace.plan.shape import shape_of
from headrace.plan.stages import Fold, plan_pipeline
from headrace.plan.terms import Reference
from headrace.schema.types import DataType, parse_type
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore
from headrace.store.duckdb.tables.names import quote
from headrace.store.opening import describe_table
from headrace.testing.store.samples import planned, turn_of

GOLDEN = Path(__file__).parent / "golden"
STREAM = """
CREATE STREAM payments (
  id STRING NOT NULL, amount DECIMAL(12,2), country STRING, tags ARRAY<STRING>, n BIGINT,
  ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 30 SECONDS
) WITH (topic = 'payments', format = 'json');
"""
PER_MINUTE = """
SELECT window.start AS minute, country, count(*) AS events, sum(amount) AS total,
       CAST(sum(amount) AS DOUBLE) / count(amount) AS mean
FROM payments WHERE amount > 0 GROUP BY window(ts, '1 minute'), country HAVING count(*) > 1
"""
ARGUMENTS = {
    "__where": parse_type("BOOLEAN"),
    "k0": parse_type("STRING"),
    "a1": parse_type("DECIMAL(12,2)"),
    "a2": parse_type("DECIMAL(12,2)"),
}
OUTPUTS = {
    "o0": parse_type("TIMESTAMP"),
    "o1": parse_type("STRING"),
    "o2": parse_type("BIGINT"),
    "o3": parse_type("DECIMAL(22,2)"),
    "o4": parse_type("DOUBLE"),
    "__having": parse_type("BOOLEAN"),
}
# Of the division, its dividend, and the 1 of HAVING.
PARTS = "DOUBLE DOUBLE INT"
OUTPUTS |= {f"__part{i}": parse_type(part) for i, part in enumerate(PARTS.split())}


def define(select: str) -> tuple[View, Stream]:
    lateness = "WITH (allowed_lateness = '10 minutes')" if "window" in select else ""
    text = f"{STREAM} CREATE MATERIALIZED VIEW v {lateness} AS {select}"
    project = parse_project({"test.sql": text})
    return project.views[0], project.streams[0]


def with_window(node: Node, window: Window) -> Node:
    if isinstance(node, Aggregate):
        return replace(node, window=window)
    assert isinstance(node, Project | Filter)
    return replace(node, input=with_window(node.input, window))


def planned_fold(
    version: str, arguments: dict[str, DataType], outputs: dict[str, DataType]
) -> Fold:
    view, stream = define(PER_MINUTE)
    return plan_fold(view, shape_of(view), stream, version, arguments, outputs)


def explained(fold: Fold, *, prepared: bool = True) -> Explanation:
    pipeline = plan_pipeline([(fold.stream, "5e6f7a8b")], [fold])
    return explain_view(pipeline, fold.table, describe_table(fold.table), prepared=prepared)


@pytest.mark.parametrize("file", ["fold.txt", "panes.txt", "days.txt", "session.txt"])
def test_a_fold_is_the_text_in_the_golden_file(file: str) -> None:
    view, stream = define(PER_MINUTE)
    windows = {
        "panes.txt": Window(86_400_000_000, "hopping", 60_000_000, offset_us=30_000_000),
        "session.txt": Window(300_000_000, "session"),
        "days.txt": Window(
            86_400_000_000, time=Scalar("{0} + interval 1 hour", ("ts",)), zone="Europe/Berlin"
        ),
    }
    if file in windows:
        query = with_window(view.query, windows[file])
        view = replace(view, query=query, late="drop", retention_us=86_400_000_000)
    fold = plan_fold(view, shape_of(view), stream, "1a2b3c4d", ARGUMENTS, OUTPUTS)
    found = explanation_text(explained(fold).to_json()) + "\n"
    if os.environ.get("HEADRACE_GOLDEN") == "write":
        (GOLDEN / file).write_text(found)
    assert found == (GOLDEN / file).read_text()


def test_plans_that_are_made_anew_in_every_turn_are_explained() -> None:
    fold = planned_fold("1a2b3c4d", ARGUMENTS, OUTPUTS)
    made_anew = "\n    planned    anew in every short turn, because Spark runs on other machines\n"
    for prepared in (True, False):
        plan = explained(fold, prepared=prepared).to_json()
        [stage] = [each for each in plan["stages"] if each["stage"] == "fold"]
        assert stage["prepared"] == prepared
        assert (made_anew in explanation_text(plan)) == (not prepared)


def test_a_unique_id_is_explained() -> None:
    view, stream = define(PER_MINUTE)
    unique = replace(stream, unique="id", unique_within_us=3_600_000_000)
    fold = plan_fold(view, shape_of(view), unique, "1a2b3c4d", ARGUMENTS, OUTPUTS)
    found = explanation_text(explained(fold).to_json())
    assert (
        "  step\n    deduplicate by id, remembered for 3600 s of its partition's clock, as\n"
        "                deduplicate:payments@5e6f7a8b\n" in found
    )


def test_a_version_is_part_of_the_physical_name() -> None:
    table = planned_fold("1a2b3c4d", ARGUMENTS, OUTPUTS).table
    assert table.name == "v__1a2b3c4d"
    assert [column.name for column in table.keys] == ["window_start", "k0"]
    assert [column.name for column in table.values] == ["_events", "a0_0", "a1_0", "a2_0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"__where": "INT"}, "view v: WHERE is INT; write a condition"),
        (
            {"k0": "ARRAY<MAP<STRING, INT>>"},
            "view v: GROUP BY country is ARRAY<MAP<STRING, INT>>: a MAP is no key; group by an ",
        ),
        ({"a1": "STRING"}, "view v: sum needs a number, not STRING"),
        ({"__having": "BIGINT"}, "view v: HAVING is BIGINT; write a condition"),
    ],
)
def test_a_type_that_cannot_be_folded_is_refused(change: dict[str, str], message: str) -> None:
    types = {name: parse_type(type) for name, type in change.items()}
    with pytest.raises(DefinitionError) as error:
        planned_fold("1a2b3c4d", ARGUMENTS | types, OUTPUTS | types)
    assert message in str(error.value)


def test_spark_evaluates_what_the_store_cannot() -> None:
    part = {"__part1": parse_type("STRING")}
    table = planned_fold("1a2b3c4d", ARGUMENTS, OUTPUTS | part).table
    [mean] = table.evaluated
    assert (mean.name, mean.place, mean.expression) == ("s0", "o4", "cast(a1 as double) / a2")
    assert table.evaluated_inputs == {
        "a1": parse_type("DECIMAL(22,2)"),
        "a2": parse_type("BIGINT"),
    }
    assert table.outputs[4].term == Reference("s0", mean.type)
    assert table.outputs[4].said == "cast(sum(amount) as double) / count(amount)"
    assert mean.column.name not in [column.name for column in table.columns]
    # A version goes on as it was begun, whatever the store can say by now.
    view, stream = define(PER_MINUTE)
    shape = shape_of(view)
    again = plan_fold(view, shape, stream, "1a2b3c4d", ARGUMENTS, OUTPUTS, {"o3"}).table
    assert [each.place for each in again.evaluated] == ["o3"]
    with pytest.raises(DefinitionError, match="over aggregates only numbers are computed with"):
        plan_fold(view, shape, stream, "1a2b3c4d", ARGUMENTS, OUTPUTS | part, ())


def test_a_map_that_follows_from_keys_is_not_called_a_key() -> None:
    view, stream = define("SELECT map('c', country) AS m FROM payments GROUP BY country")
    types = {"k0": "STRING", "k1": "MAP<STRING, STRING>", "__where": "BOOLEAN"}
    arguments = {name: parse_type(type) for name, type in types.items()}
    with pytest.raises(DefinitionError, match="and a MAP over keys cannot be kept beside them"):
        plan_fold(view, shape_of(view), stream, "1a2b3c4d", arguments, {})


@pytest.mark.parametrize(
    ("select", "is_refused"),
    [
        ("SELECT n, CAST(n AS STRING) || country AS a FROM payments GROUP BY n, country", True),
        ("SELECT n, upper(country) AS a FROM payments GROUP BY n, country", False),
        ("SELECT n, CAST(n AS STRING) AS a FROM payments GROUP BY n, CAST(n AS STRING)", False),
        ("SELECT count(*) AS a FROM payments GROUP BY n HAVING CAST(n AS STRING) = '0.0'", True),
    ],
)
def test_a_key_of_two_zeros_makes_no_further_key(select: str, is_refused: bool) -> None:
    view, stream = define(select)
    types = {key.name: parse_type("STRING") for key in shape_of(view).keys} | {
        "k0": parse_type("DOUBLE"),
        "__where": parse_type("BOOLEAN"),
    }
    outputs = {f"o{i}": parse_type("STRING") for i in range(2)}
    outputs |= {f"__part{i}": parse_type("STRING") for i in range(9)}
    outputs["__having"] = parse_type("BOOLEAN")
    message = ""
    try:
        plan_fold(view, shape_of(view), stream, "1a2b3c4d", types, outputs)
    except DefinitionError as error:
        message = str(error)
    assert bool(message) == is_refused
    if is_refused:
        assert "n is DOUBLE, whose 0.0 and -0.0 are one key; add cast(n as string)" in message


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        ("SELECT id FROM payments", {"id", "ts"}),
        ("SELECT ID FROM payments WHERE `country` = 'x'", {"id", "country", "ts"}),
        ("SELECT count(*) AS c FROM payments", {"ts"}),
        (
            "SELECT upper(country) AS c, sum(amount + n) AS s FROM payments "
            "GROUP BY upper(country)",
            {"country", "amount", "n", "ts"},
        ),
        ("SELECT id FROM payments WHERE country = 'tags'", {"id", "country", "ts"}),
    ],
)
def test_a_view_reads_the_columns_that_it_names_and_the_event_time(
    select: str, columns: set[str]
) -> None:
    view, stream = define(select)
    assert columns_read(shape_of(view), stream) == columns


def test_names_are_quoted_for_the_store() -> None:
    assert quote('a"b') == '"a""b"'


SHAPES: dict[str, list[tuple[object, ...]]] = {
    PER_MINUTE: [],  # HAVING keeps one event out
    "SELECT count(*) AS c, avg(amount) AS m FROM payments": [(1, Decimal("2.500000"))],
    "SELECT country, max(ts) AS t FROM payments GROUP BY country": [
        ("DE", datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC))
    ],
    "SELECT id, amount * 2 AS twice, tags FROM payments WHERE n = 7": [
        ("1", Decimal("5.00"), ["a"])
    ],
    "SELECT window.end AS e, min(n) + sum(n) AS s FROM payments GROUP BY window(ts, '1 hour')": [
        (datetime(2026, 1, 1, 13, tzinfo=UTC), 14)
    ],
    "SELECT window.end AS e, sum(n) AS s FROM payments GROUP BY session_window(ts, '1 hour')": [
        (datetime(2026, 1, 1, 13, 0, 30, tzinfo=UTC), 7)
    ],
}

# Queries within queries: no record comes to a condition, or to a value, that one before left out.
SCAN = Scan("payments")
NOT_SEVEN = Filter(SCAN, Scalar("{0} <> 7", ("n",)))
SHARES = Project(
    Filter(SCAN, Scalar("{0} = 7", ("n",))),
    (
        Named("share", Scalar("1 / ({0} - 6)", ("n",))),
        Named("unasked", Scalar("1 / ({0} - 7)", ("n",))),
        Named("place", Scalar("{0} || 'x'", ("country",))),
    ),
)
NESTED: list[tuple[Node, list[tuple[object, ...]]]] = [
    (
        Project(
            Filter(SHARES, Scalar("{0} = 1", ("share",))),
            (Named("twice", Scalar("{0} * 2", ("share",))),),
        ),
        [(2.0,)],
    ),
    (
        Project(
            Filter(NOT_SEVEN, Scalar("1 / ({0} - 7) > 0", ("n",))),
            (Named("n", Scalar.column("n")),),
        ),
        [],
    ),
    (
        Project(
            Aggregate(SHARES, None, (Scalar.column("place"),), (Call("count"),)),
            (
                Named("large", Scalar("upper({0})", (key_column(0),))),
                Named("n", Scalar("{0} + length({1})", (call_column(0), key_column(0)))),
            ),
        ),
        [("DEX", 4)],
    ),
]


@pytest.mark.spark
def test_spark_runs_folds_of_every_shape_and_the_store_shows_them(tmp_path: Path) -> None:
    spark = start_spark()
    _, stream = define(PER_MINUTE)
    types = {column.name: column.type for column in stream.columns} | INPUT_COLUMNS
    record = {
        "id": "1",
        "amount": Decimal("2.50"),
        "country": "DE",
        "tags": ["a"],
        "n": 7,
        "ts": datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC),
        "__partition": 0,
        "__offset": 0,
        "__watermark": None,
        "__side": None,
    }
    schema = pa.schema([(name, type.arrow) for name, type in types.items()])
    session = spark.newSession()
    rows = pa.Table.from_pylist([record], schema=schema)
    session.createDataFrame(rows).coalesce(1).createOrReplaceTempView("__input")
    views = [(define(select)[0], expected) for select, expected in SHAPES.items()]
    views += [(View("v", node), expected) for node, expected in NESTED]
    for at, (view, expected) in enumerate(views):
        [fold] = plan_view(spark, view, (stream,))
        delta = session.sql(fold.query).toArrow()
        store = DuckDBStore(tmp_path / f"{at}.duckdb")
        epoch = store.begin_epoch()
        held = hold_view(fold.view, [fold.stream], MAIN)
        store.hold(epoch, [held], {})
        store.prepare(fold.table)
        store.show(epoch, MAIN, [fold.table])
        staged = store.stage(fold.table, delta)
        store.commit(turn_of(planned(epoch, 1), {fold.table: (staged,)}))
        with store.open() as snapshot:
            answer = snapshot.query("SELECT * EXCLUDE (_events, _closed) FROM v").to_pylist()
        store.close()
        assert [tuple(row.values()) for row in answer] == expected, view.query
