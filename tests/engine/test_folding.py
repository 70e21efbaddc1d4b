"""Promise 2, nothing is lost in silence: one record never stops its view, whatever Spark calls it.

Method: one view whose expression fails on each kind of record in a way of its own, with records of
the same kind that pass; and folds that fail though no expression does, as when a worker is lost.
"""

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.engine.gears import folding, long, probing
from headrace.engine.gears.folding import fold_rows
from headrace.engine.spark.analysis import plan_view
from headrace.engine.spark.session import start_spark
from headrace.errors import ViewFailed
from headrace.plan.fold import INPUT_COLUMNS
from headrace.plan.stages import Fold
from headrace.sql import parse_project
from headrace.testing import harness

pytestmark = pytest.mark.spark

STREAM = "CREATE STREAM s (kind STRING, j STRING, p STRING, b BIGINT);\n"
# By kind: the expression, a record that it fails on, one that it does not, and the reason.
FAILURES = {
    "key twice": (
        "str_to_map(j, ',', '=')['a']", {"j": "a=1,a=2"}, {"j": "a=3"}, "[DUPLICATED_MAP_KEY]",
    ),
    "pattern": ("j LIKE p", {"j": "x", "p": "x\\"}, {"j": "x", "p": "x"}, "[INVALID_FORMAT."),
    "repeated": (
        "size(array_repeat(1, CAST(b AS INT)))", {"b": (1 << 31) - 1}, {"b": 2},
        "Cannot create array with 2147483647 elements",
    ),
    "regex": (
        "size(split(j, p))", {"j": "x", "p": "("}, {"j": "x", "p": "x"},
        "PatternSyntaxException: Unclosed group near index 1",
    ),
    "format": (
        "format_string(p, b)", {"p": "%y", "b": 1}, {"p": "%d", "b": 1},
        "UnknownFormatConversionException: Conversion = 'y'",
    ),
    "parser": ("CAST(parse_json(j) AS STRING)", {"j": "{"}, {"j": "{}"}, "[MALFORMED_RECORD_IN_"),
}  # fmt: skip


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return start_spark()


def fold_of(spark: SparkSession, kinds: list[str], expression: str | None = None) -> Fold:
    texts = {kind: expression or FAILURES[kind][0] for kind in kinds}
    cases = " ".join(f"WHEN '{kind}' THEN CAST({text} AS STRING)" for kind, text in texts.items())
    text = f"CREATE MATERIALIZED VIEW v AS SELECT CASE kind {cases} END AS value FROM s;"
    project = parse_project({"test.sql": STREAM + text})
    [fold] = plan_view(spark, project.views[0], project.streams)
    return fold


def table(fold: Fold, records: list[dict[str, object]]) -> pa.Table:
    types = {column.name: column.type for column in fold.stream.columns} | INPUT_COLUMNS
    schema = pa.schema([(name, type.arrow) for name, type in types.items()])
    places = [{"__partition": 0, "__offset": offset} for offset in range(len(records))]
    rows = [record | place for record, place in zip(records, places, strict=True)]
    return pa.Table.from_pylist(rows, schema=schema)


def dead(outcome: folding.Outcome) -> dict[int, str]:
    return {
        offset: reason
        for found in outcome.dead.get(0, [])
        for offset, reason in zip(found.offsets.to_pylist(), found.reasons.to_pylist(), strict=True)
    }


def test_a_record_that_an_expression_fails_on_is_dead_and_the_others_are_folded(
    spark: SparkSession,
) -> None:
    fold = fold_of(spark, list(FAILURES))
    records: list[dict[str, object]] = []
    reasons = {}
    for kind, (_, fails, passes, reason) in FAILURES.items():
        reasons[len(records)] = reason
        records.append({"kind": kind, **fails})
        records.append({"kind": kind, **passes})
    outcome = fold_rows(fold, spark.newSession(), table(fold, records))
    found = dead(outcome)
    assert found.keys() == reasons.keys()
    for offset, reason in reasons.items():
        assert found[offset].startswith(reason), found[offset]
    assert outcome.folded == len(records) - len(reasons)


def test_a_record_that_spark_takes_the_next_ones_for_costs_few_jobs(spark: SparkSession) -> None:
    fold = fold_of(spark, ["key twice"])
    records = [{"kind": "key twice", "j": f"a={number}"} for number in range(100)]
    records[30]["j"] = records[60]["j"] = "a=1,a=2"
    outcome = fold_rows(fold, spark.newSession(), table(fold, records), max_jobs=12)
    assert dead(outcome).keys() == {30, 60}
    assert outcome.folded == 98
    # With this function Spark fails on the next record in a way that stops the probe, too.
    other = "map_from_arrays(split(j, ','), array(1, 2))"
    fold = fold_of(spark, ["key twice"], other)
    records = [{"kind": "key twice", "j": keys} for keys in ("a,a", "a,b", "a,b")]
    outcome = fold_rows(fold, spark.newSession(), table(fold, records))
    assert dead(outcome).keys() == {0}
    assert outcome.folded == 2


def test_no_record_is_dead_for_a_failure_that_is_not_its_expressions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold = fold_of(spark, ["regex"])
    sound = {"kind": "regex", "j": "x", "p": "x"}
    # The work fails for every record, with an error that says nothing of whose fault it is.
    lost = replace(fold, query="SELECT split(j, concat('(', p)) FROM __input")
    for records in ([sound], [sound] * 3):
        with pytest.raises(ViewFailed, match="not because of one record: PatternSyntaxException"):
            fold_rows(lost, spark.newSession(), table(fold, records))
    refused = replace(fold, query="SELECT no_such FROM __input")
    with pytest.raises(ViewFailed, match="UNRESOLVED_COLUMN"):
        fold_rows(refused, spark.newSession(), table(fold, [sound]))

    # The probe cannot be run either: then nothing is known of the record.
    def no_probe(fold: Fold, session: SparkSession, rows: pa.Table) -> object:
        return session.sql("SELECT size(split('x', concat('(', id))) FROM range(1)").toArrow()

    for room in (folding, probing):
        monkeypatch.setattr(room, "failing_rows", no_probe)
    with pytest.raises(ViewFailed, match="PatternSyntaxException"):
        fold_rows(fold, spark.newSession(), table(fold, [sound | {"p": "("}, sound]))


def test_without_the_class_that_finds_failing_records_halving_does(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "_TRY_EVAL", "NoSuchExpression")
    fold = fold_of(spark, ["regex", "format"])
    sound = {"kind": "regex", "j": "x", "p": "x"}
    records = [sound] * 9
    records[2], records[7] = sound | {"p": "("}, {"kind": "format", "p": "%y", "b": 1}
    outcome = fold_rows(fold, spark.newSession(), table(fold, records))
    assert dead(outcome).keys() == {2, 7}
    assert outcome.folded == 7
    lost = replace(fold, query="SELECT split(j, concat('(', p)) FROM __input")
    with pytest.raises(ViewFailed, match="not because of one record"):
        fold_rows(lost, spark.newSession(), table(fold, [sound] * 3))


def test_a_long_turn_that_fails_for_no_records_sake_is_tried_again_and_then_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # An error that says nothing of whose fault it is, and that no expression of the view raises.
    failure = "SELECT size(split('x', concat('(', id))) FROM range(1)"
    run, failures = long.fold_frame, 1

    def failing(fold: Fold, session: SparkSession) -> pa.Table:
        nonlocal failures
        failures -= 1
        return session.sql(failure).toArrow() if failures >= 0 else run(fold, session)

    def in_the_driver(*_: object) -> None:
        raise AssertionError("the driver reads the records again")

    monkeypatch.setattr(long, "fold_frame", failing)
    monkeypatch.setattr(long.LongGear, "_fold_in_slices", in_the_driver)
    view = "CREATE MATERIALIZED VIEW v AS SELECT kind, sum(10 / b) AS n FROM s GROUP BY kind;"
    with harness(STREAM + view, partitions=1) as h:
        h.append("s", [{"kind": "a", "b": 1}, {"kind": "a", "b": 5}])
        h.turn(gear="long")
        assert h.rows("v") == [{"kind": "a", "n": 12.0}]
        failures = 2
        h.append("s", [{"kind": "b", "b": 1}])
        h.turn(gear="long")
        [aside] = [unit for name, unit in h.engine.units.items() if name != "main"]
        assert "not because of one record" in aside.reason
        h.restart()
        h.turn(gear="long")
        assert {row["kind"] for row in h.rows("v")} == {"a", "b"}


def test_a_long_turn_that_makes_more_than_the_driver_takes_is_read_in_smaller_ones(
    spark: SparkSession,
) -> None:
    conf = spark.sparkContext._jsc.sc().conf()  # the one that jobs go by, not a copy
    limit = conf.get("spark.driver.maxResultSize")
    view = "CREATE MATERIALIZED VIEW v AS SELECT kind, count(*) AS n FROM s GROUP BY kind;"
    with harness(STREAM + view, partitions=1) as h:
        h.append("s", [{"kind": f"{n:0100}"} for n in range(3_000)])
        conf.set("spark.driver.maxResultSize", "200k")
        try:
            sizes = []
            while reports := h.turn(gear="long"):
                sizes += [report.records for report in reports]
        finally:
            conf.set("spark.driver.maxResultSize", limit)
        assert sum(sizes) == 3_000
        assert max(sizes) < 3_000
        assert len(h.rows("v")) == 3_000
        assert list(h.engine.units) == ["main"]
