"""A row over aggregates on which an expression fails is left out, and is in `<view>.errors`.

Method: stories whose rows and errors are written out, in both gears, with sinks, edits and crashes;
then random logs, cuts and crashes against the reference.
"""

from datetime import datetime, timedelta

import pytest
from agreement import any_split, assert_the_cuts_do_not_show, rich_scripts
from hypothesis import given
from hypothesis import strategies as st
from told import held, held_rows, told

from headrace.errors import AuditFailed
from headrace.observe.status import take_status
from headrace.plan.terms import Cause
from headrace.project.settings import Settings
from headrace.testing import Harness, harness
from headrace.testing.harness import Value
from headrace.testing.strategies import Script

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

STREAM = """
CREATE STREAM clicks (k STRING, x BIGINT, d DECIMAL(20,2), f DOUBLE, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS) WITH (topic = 'clicks');
"""
RATIO = """
CREATE MATERIALIZED VIEW ratio AS SELECT k, 1 / {by} AS r FROM clicks GROUP BY k;
CREATE SINK upserts FROM ratio WITH (topic = 'ratio.upserts');
CREATE SINK retracts FROM ratio WITH (topic = 'ratio.rows', mode = 'retract');
"""
BAD = "(count(*) - 2)"
FAILS = "r: 1 / (count(*) - 2) fails: division by zero"


def append(h: Harness, *times: str, **values: object) -> None:
    """Append a record for each time of a day."""
    records = [{"k": "a", "ts": f"2026-01-01T{time}Z", **values} for time in times]
    h.append("clicks", records, partition=0)


def clicks(h: Harness, *times: str, gear: str | None = None, **values: object) -> None:
    """Append records, and take turns until all is read."""
    append(h, *times, **values)
    while h.turn(gear=gear):
        pass


@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_row_that_fails_leaves_and_comes_back(gear: str) -> None:
    with harness(STREAM + RATIO.format(by=BAD), partitions=1) as h:
        clicks(h, "12:00:01", gear=gear)
        clicks(h, "12:00:01", gear=gear, k="b")
        assert (h.rows("ratio"), h.errors("ratio")) == (
            [{"k": "a", "r": -1.0}, {"k": "b", "r": -1.0}],
            [],
        )
        clicks(h, "12:00:02", gear=gear)
        assert h.rows("ratio") == [{"k": "b", "r": -1.0}]
        assert h.errors("ratio") == [{"k": "a", "error": FAILS}]
        assert told(h, "ratio.upserts")[-1] == ({"k": "a"}, None)
        h.restart()
        assert h.errors("ratio") == [{"k": "a", "error": FAILS}]
        h.audit()
        clicks(h, "12:00:03", gear=gear)
        assert (len(h.rows("ratio")), h.errors("ratio")) == (2, [])
        changes = [value and (value["k"], value["r"]) for _, value in told(h, "ratio.upserts")]
        assert changes == [("a", -1.0), ("b", -1.0), None, ("a", 1.0)]
        assert held(h, "ratio.rows") == held(h, "ratio.upserts") == held_rows(h, "ratio")
        h.audit()


CAUSES = {
    "1 / (count(*) - 1)": "division by zero",
    "count(*) % (count(*) - 1)": "division by zero",
    "CASE WHEN max(x) > 1 THEN count(*) DIV (count(*) - 1) END": "division by zero",
    "collect_list(k, 1000)[1]": "there is no such element",
    "element_at(collect_list(k, 1000), 2)": "there is no such element",
    "slice(collect_list(k, 1000), 0, 1)": str(Cause.SLICE),
    "max(x) + 9223372036854775800": "the number is too large for its type",
    "CAST(max(x) AS TINYINT)": "the number is too large for its type",
    "CAST(max(f) AS DECIMAL(5, 2))": "the number is too large for its type",
    "sum(x)": "the sum is too large for its type",
    "sum(DISTINCT x)": "the sum is too large for its type",
    "sum(x) / count(*)": "the sum is too large for its type",
    "max(d) * max(d)": "",
    "count(DISTINCT k) / (count(*) - count(DISTINCT k))": "division by zero",
    "add_months(DATE '2024-01-31', CAST(max(x) % 1000000007 AS INT))": "",
}
#: What does not fail, because nobody asks for it, or because the value is NULL.
SOUND = [
    "CASE WHEN count(*) > 1 THEN 1 / (count(*) - 1) END",
    "coalesce(count(*), 1 / (count(*) - 1))",
    "if(count(*) = 1, 0, 1 / (count(*) - 1))",
    "max(nullif(x, x)) / (count(*) - 1)",
    "count(*) > 5 AND 1 / (count(*) - 1) > 0",
]


def test_the_error_names_the_output_the_expression_and_the_cause() -> None:
    outputs = [*CAUSES, *SOUND]
    views = "".join(
        f"CREATE MATERIALIZED VIEW v{at} AS SELECT {text} AS o, k FROM clicks GROUP BY k;"
        for at, text in enumerate(outputs)
    )
    with harness(STREAM + views, partitions=1) as h:
        append(h, "12:00:01", x=2**63 - 2, f=1e9, d="999999999999999999.99")
        append(h, "12:00:02", k="b", x=2**63 - 2)
        append(h, "12:00:02", "12:00:03", k="c", x=1, f=1.0, d="1.00")
        clicks(h, "12:00:02", k="b", x=2**63 - 3)
        found = {
            text: {row["k"]: row["error"] for row in h.errors(f"v{at}")}
            for at, text in enumerate(outputs)
        }
        alone = {text: rows.get("a") for text, rows in found.items() if "sum(" not in text}
        for text, cause in CAUSES.items():
            rows = found[text]
            which = "b" if "sum(" in text else "a"
            behind = f": {cause}" if cause else ""
            plain = rows[which].replace("`", "").lower()
            assert plain == f"o: {text} fails{behind}".lower()
        assert [alone[text] for text in SOUND] == [None] * len(SOUND)
        assert found["sum(x)"].keys() == {"b"}
        h.audit()


def test_having_is_asked_first() -> None:
    view = """
    CREATE MATERIALIZED VIEW v AS SELECT 1 / (count(*) - 1) AS error, k AS Error_of, count(*) AS n
    FROM clicks GROUP BY k HAVING 10 / (count(*) - 3) < 0;
    """
    with harness(STREAM + view, partitions=1) as h:
        for k, count in (("a", 1), ("b", 2), ("c", 3), ("d", 4)):
            append(h, *["12:00:01"] * count, k=k)
        clicks(h)
        assert h.rows("v") == [{"error": 1.0, "Error_of": "b", "n": 2}]
        assert sorted(map(str, h.errors("v"))) == [
            "{'Error_of': 'a', 'error': 'error: 1 / (count(*) - 1) fails: division by zero'}",
            "{'Error_of': 'c', 'error': 'HAVING: 10 / (count(*) - 3) < 0 fails: division by zero'}",
        ]
        clicks(h, "12:00:09", k="c")  # now HAVING is not true, and nothing else is asked
        assert [row["Error_of"] for row in h.errors("v")] == ["a"]


def test_keys_are_named_as_sinks_name_them() -> None:
    view = """
    CREATE MATERIALIZED VIEW v AS SELECT window.start AS begin, k AS error, 1 / (count(*) - 1) AS r
    FROM clicks GROUP BY window(ts, '10 seconds'), k, x;
    CREATE MATERIALIZED VIEW whole AS SELECT 1 / (count(*) - 1) AS r FROM clicks;
    """
    with harness(STREAM + view, partitions=1) as h:
        clicks(h, "12:00:01", x=7)
        [row] = h.errors("v")
        assert list(row) == ["begin", "error", "k1", "_error"]
        assert (row["error"], row["k1"]) == ("a", 7)
        [row] = h.errors("whole")
        assert list(row) == ["error"]


def test_an_edit_swaps_rows_and_errors_together() -> None:
    with harness(STREAM + RATIO.format(by=BAD), partitions=1) as h:
        clicks(h, "12:00:01", "12:00:02")
        clicks(h, "12:00:03", k="b")
        h.restart(STREAM + RATIO.format(by="(count(*) - 1)"))
        clicks(h)
        assert h.rows("ratio") == [{"k": "a", "r": 1.0}]
        assert [row["k"] for row in h.errors("ratio")] == ["b"]
        assert held(h, "ratio.rows") == held(h, "ratio.upserts") == held_rows(h, "ratio")
        # A view of records has no errors: a record that fails is dead.
        h.restart(STREAM + "CREATE MATERIALIZED VIEW ratio AS SELECT k FROM clicks;")
        clicks(h)
        with h.engine.tools.store.open() as snapshot:
            shown = snapshot.query("SELECT view_name FROM duckdb_views() WHERE NOT internal")
        assert sorted(shown["view_name"].to_pylist()) == ["ratio", "ratio__rows", "watermarks"]


def test_status_counts_errors_and_audit_compares_them() -> None:
    hops = """
    CREATE MATERIALIZED VIEW hops AS SELECT window.end AS until, 1 / (count(*) - 1) AS r
    FROM clicks GROUP BY window(ts, '20 seconds', '10 seconds');
    CREATE MATERIALIZED VIEW plain AS SELECT k FROM clicks;
    """
    with harness(STREAM + RATIO.format(by=BAD) + hops, partitions=1) as h:
        clicks(h, "12:00:01", "12:00:02")
        clicks(h, "12:00:03", k="b")
        with h.engine.tools.store.open() as snapshot:
            status = take_status("test", snapshot, h.log, h.engine.settings)
        assert {view.name: view.error_rows for view in status.views} == {
            "hops": None,
            "plain": None,
            "ratio": 1,
        }
        h.audit()
        store = h.engine.tools.store
        with store._file.transaction():
            [(name,)] = store._file.rows(
                "SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'ratio__%__errors'"
            )
            store._file.run(
                f"CREATE OR REPLACE VIEW headrace.\"{name}\" AS SELECT 'c' AS k, '?' AS error"
            )
        with pytest.raises(AuditFailed) as failed:
            h.audit()
        assert [str(each) for each in failed.value.differences] == [
            "view ratio: ratio.errors has an error that the log does not make: "
            "{'k': c, 'error': ?}",
            "view ratio: ratio.errors lacks an error that the log makes: "
            f"{{'k': a, 'error': '{FAILS}'}}",
        ]


EVENTS = """
CREATE STREAM events (k STRING, x BIGINT, f DOUBLE, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS) WITH (topic = 'events');
CREATE MATERIALIZED VIEW totals AS
SELECT k, 100 / sum(x) AS share, CAST(sum(x) AS TINYINT) AS tiny
FROM events GROUP BY k HAVING 7 / (count(*) - 3) > -2;
CREATE MATERIALIZED VIEW windowed
WITH (retention = '30 seconds', allowed_lateness = '10 seconds') AS
SELECT window.start AS start, k, count(*) / (count(DISTINCT x) - 1) AS each, sum(x) AS total
FROM events GROUP BY window(ts, '10 seconds'), k;
CREATE MATERIALIZED VIEW hops AS
SELECT window.end AS until, 10 / (count(*) - 2) AS share
FROM events GROUP BY window(ts, '20 seconds', '10 seconds');
CREATE MATERIALIZED VIEW visits AS
SELECT window.start AS start, k, 10 / (count(*) - 2) AS share, CAST(max(x) AS TINYINT) AS tiny
FROM events GROUP BY session_window(ts, '5 seconds'), k;
CREATE SINK told FROM visits WITH (topic = 'visits.rows', mode = 'retract');
"""


def values(event_time: datetime) -> st.SearchStrategy[Value]:
    return st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "x": st.sampled_from([0, 1, -1, 100, None]),
            "f": st.sampled_from([0.5, None]),
            "ts": st.just((event_time + timedelta(0)).isoformat()),
        }
    )


@any_split(1, soaked=4)
@given(script=rich_scripts(values, streams=["events"], min_records=6))
def test_errors_are_the_same_whatever_the_cut(script: Script) -> None:
    assert_the_cuts_do_not_show(script, EVENTS, Settings(split_folds=2))
