"""Every function that Spark lists works over an aggregate, or is refused with a reason.

Method: each function is asked with the first example of its own documentation, in which a literal
becomes an aggregate of that literal: `levenshtein(max('kitten'), 'sitting')`. What the front door
and Spark's analysis accept are outputs of a few views, over one record; their values are those of
the example itself, asked of Spark without any of ours. Where that fails, the row is an error.
"""

import re
from collections.abc import Iterator, Sequence

import pytest
from pyspark.sql import SparkSession

from headrace.engine.gears.probing import SHARING, try_all
from headrace.engine.spark.analysis import plan_view
from headrace.engine.spark.faults import REFUSALS
from headrace.engine.spark.session import start_spark
from headrace.errors import DefinitionError
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.testing import harness

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

STREAM = """
CREATE STREAM s (x BIGINT, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts) WITH (topic = 's');
"""
#: Those without an example, or whose example is over a table.
OWN = {
    "!=": "1 != 2",
    "<>": "1 <> 2",
    "||": "'a' || 'b'",
    "case": "CASE WHEN 1 > 0 THEN 'a' END",
    **{
        name: f"{name}('1')"
        for name in ("bigint", "boolean", "decimal", "double", "float", "int", "smallint", "string")
    },
    **{name: f"{name}('1')" for name in ("tinyint", "binary")},
    "date": "date('2024-01-31')",
    "time": "time('12:00:00')",
    "timestamp": "timestamp('2024-01-31 12:00:00')",
}
LITERAL = re.compile(
    r"INTERVAL\s*'[^']*'|"
    r"(?P<literal>(?:\b(?:DATE|TIMESTAMP|TIMESTAMP_NTZ|TIMESTAMP_LTZ|TIME|X|R)\s*)?"
    r"(?:'(?:[^'\\]|\\.)*'|\"[^\"]*\")|(?<![\w.'])\d+(?:\.\d+)?\w*)",
    re.IGNORECASE,
)
NO_COLUMN = "its type is none of a column"
MOST = 6  # ways in which a function is asked, until one is accepted
TOGETHER = 60  # outputs of a view
#: Kinds of functions that are none of a single row: over aggregates the front door refuses them.
NOT_SCALAR = ("agg_funcs", "generator_funcs", "table_funcs", "window_funcs")


def examples_of(name: str, text: str) -> list[str]:
    """Return expressions that call a function, with literals as arguments."""
    found = [
        re.sub(r"\s+", " ", each).strip()
        for each in re.findall(r"> SELECT (.*?);\s*\n", text, re.DOTALL)
        if not re.search(r"\b(FROM\s+(VALUES|\(|\w+\()|OVER|LATERAL)\b", each, re.IGNORECASE)
    ]
    own = [OWN[name]] if name in OWN else []
    # Sketches are shown over tables: here they are over bytes that are none, and fail on the row.
    sketches = [f"{name}({arguments})" for arguments in ("X'00'", "X'00', X'00'", "X'00', 1")]
    return own or found or sketches


def over_aggregates(example: str) -> Iterator[tuple[str, str]]:
    """Yield an example, and the same with one of its literals as an aggregate, for each of them."""
    found = [each for each in LITERAL.finditer(example) if each["literal"]]
    for each in found:
        yield example, f"{example[: each.start()]}max({each[0]}){example[each.end() :]}"
    if not found:
        yield f"({example}) IS NULL AND 1 = 1", f"({example}) IS NULL AND max(1) = 1"


def refusals(expressions: Sequence[str]) -> dict[str, str]:
    """Return why the front door refuses expressions, of those that it refuses."""
    views = [
        f"CREATE MATERIALIZED VIEW v{at} AS SELECT {text} AS o FROM s;"
        for at, text in enumerate(expressions)
    ]
    try:
        parse_project({"s.sql": STREAM, "v.sql": "\n".join(views)})
    except DefinitionError as error:
        lines = {problem.location.line: problem.message for problem in error.problems}
        return {expressions[line - 1]: message for line, message in lines.items()}
    return {}


def spark_refusal(spark: SparkSession, expression: str) -> str:
    try:
        found = spark.sql(f"SELECT {expression} AS o FROM __one").schema[0].dataType
    except REFUSALS as error:
        return str(error).splitlines()[0]
    odd = re.search(r"interval|variant|void|time\(|timestamp_ntz|geo|collate", found.simpleString())
    return NO_COLUMN if odd else ""


def listed(spark: SparkSession) -> dict[str, tuple[str, str]]:
    """Return every function that Spark lists, with its kind and its examples."""
    jvm, catalog = spark._jvm, spark._jsparkSession.sessionState().catalog()
    found = {}
    for (name,) in spark.sql("SHOW FUNCTIONS").collect():
        place = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, jvm.scala.Option.empty())
        has_info = name not in OWN
        info = catalog.lookupFunctionInfo(place) if has_info else None
        found[name] = (info.getGroup(), info.getExamples()) if info else ("", "")
    return found


def plan_refusal(spark: SparkSession, expression: str) -> str:
    """Return why the plan refuses an expression: no column can have its type."""
    view = f"CREATE MATERIALIZED VIEW v AS SELECT {expression} AS o FROM s;"
    project = parse_project({"a.sql": STREAM + view})
    with pytest.raises(DefinitionError) as refused:
        plan_view(spark, project.views[0], project.streams)
    return refused.value.problems[0].message


def expected(spark: SparkSession, examples: dict[str, str]) -> dict[str, tuple[bool, object]]:
    """Return whether each example is sound, and its value, as Spark alone answers."""
    spark.conf.set(SHARING, "false")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")  # to compile takes longer than one row
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    found = {}
    for begin in range(0, len(examples), TOGETHER):
        some = list(examples.items())[begin : begin + TOGETHER]
        tried = [
            try_all(spark, {"v": f"if(x IS NULL, NULL, {text})"}).alias(f"c{at}")
            for at, (_, text) in enumerate(some)
        ]
        row = spark.table("__one").select(*tried).toArrow()
        for at, (name, _) in enumerate(some):
            value = row[f"c{at}"][0]
            found[name] = value.is_valid, (value.as_py() or {}).get("v")
    return found


def sort_out(spark: SparkSession) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Return which functions are accepted, with an example and the same over an aggregate.

    And which are refused, with the reason.
    """
    candidates = {
        name: [
            pair
            for example in ([f"{name}(1)"] if kind in NOT_SCALAR else examples_of(name, text))
            for pair in over_aggregates(example)
        ][:MOST]
        for name, (kind, text) in listed(spark).items()
    }
    reasons = refusals(list({text: 0 for each in candidates.values() for _, text in each}))
    works: dict[str, tuple[str, str]] = {}
    refused: dict[str, str] = {}
    for name, pairs in candidates.items():
        for example, expression in pairs:
            reason = reasons.get(expression) or spark_refusal(spark, expression)
            if not reason:
                works[name] = example, expression
                break
            if reason == NO_COLUMN:
                reason = plan_refusal(spark, expression)
            refused.setdefault(name, reason)
    return works, {name: reason for name, reason in refused.items() if name not in works}


def select(view: str, expressions: Sequence[str]) -> str:
    columns = ", ".join(f"{text} AS o{at}" for at, text in enumerate(expressions))
    return f"CREATE MATERIALIZED VIEW {view} AS SELECT {columns} FROM s;"


def test_every_function_works_over_an_aggregate_or_is_refused_with_a_reason() -> None:
    spark = start_spark().newSession()
    spark.createDataFrame([(1,)], "x BIGINT").createOrReplaceTempView("__one")
    works, refused = sort_out(spark)
    assert all(len(reason) > 20 for reason in refused.values()), refused
    assert len(works) > 380
    wanted = expected(spark, {name: example for name, (example, _) in works.items()})
    sound = [name for name, (is_sound, _) in wanted.items() if is_sound]
    failing = [name for name, (is_sound, _) in wanted.items() if not is_sound]
    groups = [sound[begin : begin + TOGETHER] for begin in range(0, len(sound), TOGETHER)]
    views = [select(f"v{at}", [works[name][1] for name in each]) for at, each in enumerate(groups)]
    views.append(select("failing", [works[name][1] for name in failing]))
    with harness(STREAM + "".join(views), partitions=1, settings=Settings()) as h:
        h.append("s", [{"x": 1, "ts": "2026-01-01T00:00:00Z"}])
        h.turn()
        found = {}
        for at, group in enumerate(groups):
            rows = h.rows(f"v{at}")
            assert len(rows) == 1, (h.errors(f"v{at}"), h.dead(f"v{at}"))
            [row] = rows
            found |= dict(zip(group, row.values(), strict=True))
        [error] = h.errors("failing")
        assert h.rows("failing") == []
        assert error["error"].startswith("o0: ")
    different = {
        name: (works[name][1], repr(found[name]), repr(wanted[name][1]))
        for name in sound
        if repr(found[name]) != repr(wanted[name][1])
    }
    assert different == {}
