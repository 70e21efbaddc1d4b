"""Golden cases, a file each: what is good runs and is right, and what is refused says why.

Method: every file of cases/good/ holds definitions over the streams of cases/streams.sql; their
names begin with the file's. All of them read one log (case_log.py), in turns of both gears that are
cut at random places; rows, late and dead sets and counters are those of the reference. Where the
reference cannot evaluate an expression, the file says `-- oracle: spark`: then the rows are those
of the same query text, run once by plain Spark over all accepted records.
A file of cases/refused/ ends with its problems, as `-- error: line:column: text`, one per problem.
`HEADRACE_GOLDEN=write pytest tests/sql/test_cases.py` writes the problems anew, to be reviewed.
"""

import os
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from agreement import answer_of_the_reference, as_a_multiset, assert_view_agrees, records_of
from case_log import PARTITIONS, draw_log

from headrace.engine.spark.session import start_spark
from headrace.errors import DefinitionError
from headrace.reference.streams import read_stream
from headrace.sql import parse_project
from headrace.testing import Harness, harness
from headrace.testing.strategies import Append, Script, Turn, play

CASES = Path(__file__).parent / "cases"
STREAMS = (CASES / "streams.sql").read_text()
GOOD = {path.stem: path.read_text() for path in sorted((CASES / "good").glob("*.sql"))}
REFUSED = sorted(path.stem for path in (CASES / "refused").glob("*.sql"))
PLAIN = "-- oracle: spark\n"
TOGETHER = 30  # views of one harness: a turn runs a Spark job for each
GROUPS = [list(GOOD)[start : start + TOGETHER] for start in range(0, len(GOOD), TOGETHER)]
CREATE = re.compile(r"CREATE MATERIALIZED VIEW \w+(?:\s+WITH \(.*?\))? AS\s", re.DOTALL)


def test_there_are_enough_cases() -> None:
    assert len(GOOD) >= 80
    assert len(REFUSED) >= 80


@pytest.mark.parametrize("name", GOOD)
def test_a_good_case_is_accepted_and_its_names_are_its_own(name: str) -> None:
    project = parse_project({"streams.sql": STREAMS, f"{name}.sql": GOOD[name]})
    assert [view.name for view in project.views] == [name]
    assert all(query.name.startswith(name) for query in project.queries)
    given = len(parse_project({"streams.sql": STREAMS}).streams)
    assert all(stream.name.startswith(name) for stream in project.streams[given:])


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_case_says_where_why_and_what_to_write(name: str) -> None:
    path = CASES / "refused" / f"{name}.sql"
    lines = path.read_text().splitlines(keepends=True)
    sql = "".join(line for line in lines if not line.startswith("-- error: "))
    expected = [line.rstrip("\n") for line in lines if line.startswith("-- error: ")]
    with pytest.raises(DefinitionError) as refused:
        parse_project({"streams.sql": STREAMS, "case": sql})
    found = [f"-- error: {problem}".replace("case:", "", 1) for problem in refused.value.problems]
    if os.environ.get("HEADRACE_GOLDEN") == "write":
        path.write_text(sql + "".join(f"{line}\n" for line in found))
    assert found == expected
    assert expected


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_reference_and_gears_agree_on_all_good_cases(group: int) -> None:
    names = GROUPS[group]
    with harness(STREAMS + "".join(map(GOOD.__getitem__, names)), partitions=PARTITIONS) as h:
        play(h, cut(draw_log(), group))
        asked = [view for view in h.project.views if PLAIN not in GOOD[view.name]]
        expected = answer_of_the_reference(h, replace(h.project, views=tuple(asked)))
        plain = [view.name for view in h.project.views if view not in asked]
        show_to_spark(h)
        problems = [faults(assert_view_agrees, h, view.name, expected) for view in asked]
        problems += [faults(assert_is_plain, h, name) for name in plain]
        assert "".join(problems) == ""


def cut(log: Sequence[Append], seed: int) -> Script:
    """Return the log with a turn of each gear: one at a random place, the other at its end."""
    script: Script = [*log]
    gears = ("short", "long") if seed % 2 else ("long", "short")
    script.insert(random.Random(seed).randrange(20, len(script)), Turn(None, gears[0]))
    return [*script, Turn(None, gears[1])]


def show_to_spark(harness: Harness) -> None:
    """Let Spark know all accepted records of every stream, under the stream's name."""
    records = records_of(harness, harness.project)
    for stream in harness.project.streams:
        if stream.unique is None:
            accepted = [each.values for each in read_stream(stream, records, ()).readable]
            schema = pa.schema([(column.name, column.type.arrow) for column in stream.columns])
            table = pa.Table.from_pylist(accepted, schema)
            start_spark().createDataFrame(table).createOrReplaceTempView(stream.name)


def assert_is_plain(harness: Harness, view: str) -> None:
    """Check that a view's rows are what Spark makes of the text of its query."""
    text = CREATE.sub("", GOOD[view].rstrip().rstrip(";"))
    rows = start_spark().sql(text).toArrow().to_pylist()
    assert as_a_multiset(harness.rows(view)) == as_a_multiset(rows), view
    assert harness.dead(view) == [], view
    assert rows != [], view


def faults(check: Callable[..., None], *arguments: object) -> str:
    """Return what a check finds wrong."""
    try:
        check(*arguments)
    except AssertionError as error:
        return f"{error}\n\n"
    return ""
