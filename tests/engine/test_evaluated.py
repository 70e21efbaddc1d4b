"""Spark evaluates what the store cannot, from merged rows, in the turn that changes them.

Method: stories whose rows are written out, in both gears, over groups, windows and sessions, with
sinks, edits and crashes; what was handed to Spark is counted; then random logs, cuts and crashes
against the reference, which evaluates in its own way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from agreement import any_split, assert_the_cuts_do_not_show, rich_scripts
from hypothesis import given
from hypothesis import strategies as st
from told import held, held_rows

from headrace.engine.gears import evaluating
from headrace.engine.turn import turn
from headrace.errors import AuditFailed, DefinitionError
from headrace.ledger.entries import HoldingState
from headrace.plan.explain import explain_view
from headrace.plan.explain_text import explanation_text
from headrace.plan.stages import tables_of
from headrace.project.settings import Settings
from headrace.store.opening import describe_table
from headrace.testing import Harness, harness
from headrace.testing.harness import Value
from headrace.testing.strategies import Script

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

STREAM = """
CREATE STREAM s (k STRING, t STRING, x BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS) WITH (topic = 's');
"""
WHOLE = """
CREATE MATERIALIZED VIEW whole AS
SELECT k, upper(max(t)) AS loud, count(*) AS n, CAST(max(t) AS INT) + 1 AS number,
  transform(collect_list(x), e -> e * 10) AS tens
FROM s GROUP BY k HAVING soundex(min(k)) <> 'Z000';
CREATE SINK told FROM whole WITH (topic = 'whole.rows', mode = 'retract');
"""
VISITS = """
CREATE MATERIALIZED VIEW visits AS
SELECT k, date_part('SECOND', window.start) AS second, reverse(max(t)) AS back, count(*) AS n
FROM s GROUP BY session_window(ts, '5 seconds'), k;
CREATE MATERIALIZED VIEW minutes AS
SELECT window.start AS minute, lower(max(t)) AS low, sum(x) << 1 AS twice
FROM s GROUP BY window(ts, '1 minute') HAVING lower(min(t)) <> 'no';
"""


def at(second: float) -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=second)


def put(h: Harness, *rows: tuple[str, str, int, float], gear: str | None = None) -> None:
    """Append records of key, text, number and second, and take turns until all is read."""
    h.append("s", [{"k": k, "t": t, "x": x, "ts": at(s)} for k, t, x, s in rows], partition=0)
    while h.turn(gear=gear):
        pass


@contextmanager
def handed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, int]]]:
    """Note how many rows of which views are handed to Spark, commit by commit."""
    noted: list[dict[str, int]] = []
    evaluate = evaluating.evaluate_rows

    def noting(spark: object, rows: dict[object, pa.Table]) -> object:
        noted.append({table.view: each.num_rows for table, each in rows.items()})
        return evaluate(spark, rows)

    with monkeypatch.context() as patch:
        patch.setattr(turn, "evaluate_rows", noting)
        yield noted


@pytest.mark.parametrize("gear", ["short", "long"])
def test_values_follow_the_merged_rows(gear: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with harness(STREAM + WHOLE + VISITS, partitions=1) as h, handed(monkeypatch) as noted:
        put(h, ("a", "7", 1, 1), ("b", "x", 2, 1), gear=gear)
        assert h.rows("whole") == [{"k": "a", "loud": "7", "n": 1, "number": 8, "tens": [10]}]
        error = "number: cast(max(t) as int) + 1 fails"
        assert h.errors("whole") == [{"k": "b", "error": error}]
        put(h, ("a", "9", 3, 2), ("c", "Abc", 1, 8), gear=gear)
        assert {row["k"]: row["tens"] for row in h.rows("whole")} == {"a": [10, 30]}
        assert sorted(row["k"] for row in h.errors("whole")) == ["b", "c"]
        # Two sessions of a become one.
        put(h, ("a", "yz", 0, 10), gear=gear)
        put(h, ("a", "zz", 0, 6), gear=gear)
        visits = [(row["k"], int(row["second"]), row["back"], row["n"]) for row in h.rows("visits")]
        assert sorted(visits) == [("a", 1, "zz", 4), ("b", 1, "x", 1), ("c", 8, "cbA", 1)]
        assert h.rows("minutes") == [{"minute": at(0), "low": "zz", "twice": 14}]
        # Of each view the rows that a turn touched, all views together.
        assert noted[:2] == [
            {"whole": 2, "visits": 2, "minutes": 1},
            {"whole": 2, "visits": 2, "minutes": 1},
        ]
        assert all(sum(each.values()) == 3 for each in noted[2:])
        assert held(h, "whole.rows") == held_rows(h, "whole")
        h.restart()
        assert sorted(row["k"] for row in h.errors("whole")) == ["a", "b", "c"]
        h.audit()


def test_a_crash_in_any_step_of_the_commit_shows_nowhere() -> None:
    with harness(STREAM + WHOLE + VISITS, partitions=1) as h:
        for second, point in enumerate(["after_stage", "before_commit", "after_commit"]):
            h.crash(point)
            put(h, ("a", f"{second}", second, second))
            assert h.crashed
            h.restart()
            while h.turn():
                pass
            assert h.rows("whole")[0]["number"] == second + 1
            assert held(h, "whole.rows") == held_rows(h, "whole")
        h.audit()


def test_an_edit_and_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    edited = WHOLE.replace("upper(max(t))", "lower(max(t))").replace(" <> 'Z000'", " IS NOT NULL")
    with harness(STREAM + WHOLE, partitions=1) as h:
        put(h, ("a", "7", 1, 1), ("b", "X", 2, 1))
        with h.engine.tools.store.open() as snapshot:
            kept = {each.name: each.evaluated for each in snapshot.holdings()}
        assert kept == {"s": (), "whole": ("o1", "o3", "o4", "having")}
        with handed(monkeypatch) as noted:
            h.restart()
            while h.turn():
                pass
            assert noted == []  # nothing is evaluated again
        h.restart(STREAM + edited)
        put(h, ("a", "8", 1, 2))
        assert [row["loud"] for row in h.rows("whole")] == ["8"]
        assert held(h, "whole.rows") == held_rows(h, "whole")
        h.audit()


def test_the_ledger_decides_who_evaluates_a_version_that_was_begun() -> None:
    """A later release may let the store say what Spark was asked for; the version goes on."""
    view = "CREATE MATERIALIZED VIEW v AS SELECT k, count(*) * 2 AS twice FROM s GROUP BY k;"
    with harness(STREAM + view, partitions=1) as h:
        engine = h.engine
        [plain] = tables_of(engine.units["main"].folds)
        assert plain.evaluated == ()
        store = engine.tools.store
        with store._file.transaction():
            store._file.run("UPDATE headrace.holdings SET evaluated = ['o1'] WHERE kind = 'view'")
            store._file.run(f'DROP TABLE headrace."{plain.name}"')
        h.restart()
        [table] = tables_of(h.engine.units["main"].folds)
        assert [each.place for each in table.evaluated] == ["o1"]
        put(h, ("a", "", 1, 1), ("a", "", 1, 1))
        assert h.rows("v") == [{"k": "a", "twice": 4}]
        h.audit()


def test_audit_finds_a_stored_value_that_the_row_does_not_give() -> None:
    with harness(STREAM + WHOLE, partitions=1) as h:
        put(h, ("a", "7", 1, 1))
        [table] = tables_of(h.engine.units["main"].folds)
        store = h.engine.tools.store
        with store._file.transaction():
            store._file.run(f"UPDATE headrace.\"{table.name}\" SET s0 = struct_pack(v := 'no')")
        with pytest.raises(AuditFailed, match=r"the table has .*'v': 'no'"):
            h.audit()


def test_rows_are_evaluated_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "CHUNK_ROWS", 3)
    with harness(STREAM + WHOLE + VISITS, partitions=1) as h:
        put(h, *((f"k{number}", f"{number}", number, 1) for number in range(8)))
        found = {row["k"]: row["number"] for row in h.rows("whole")}
        assert found == {f"k{number}": number + 1 for number in range(8)}


def test_work_that_fails_sets_its_view_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    with harness(STREAM + WHOLE + VISITS, partitions=1) as h:
        put(h, ("a", "1", 1, 1))
        monkeypatch.setattr(
            evaluating, "_columns", lambda session, table: ["no_such_column" + table.view]
        )
        evaluating._prepare.cache_clear()
        put(h, ("a", "2", 1, 1))
        with h.engine.tools.store.open() as snapshot:
            states = {each.name: each.state for each in snapshot.holdings()}
        assert states["whole"] is HoldingState.FAILED
        monkeypatch.undo()
        evaluating._prepare.cache_clear()
        h.restart()
        while h.turn():
            pass
        assert [row["number"] for row in h.rows("whole")] == [3]
        h.audit()


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        (
            "upper(max(t)) AS u FROM s GROUP BY window(ts, '2 minutes', '1 minute')",
            "compute it when",
        ),
        ("struct(max(t)) AS u FROM s", "struct() cannot be applied to an aggregate; write named_"),
        ("to_json(struct(k)) || soundex(max(t)) AS u FROM s GROUP BY k", "names its fields after"),
        ("soundex(max(x), 2) AS u FROM s", "Spark refuses this: [WRONG_NUM_ARGS"),
        ("make_interval(max(x)) AS u FROM s", "INTERVAL is not a type of Headrace"),
        ("max(t) || uuid() AS u FROM s", "gives another answer every time"),
    ],
)
def test_what_nobody_evaluates_is_refused(select: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        harness(STREAM + f"CREATE MATERIALIZED VIEW v AS SELECT {select};").__enter__()
    assert reason in str(refused.value)


def test_explain_says_who_evaluates() -> None:
    with harness(STREAM + WHOLE, partitions=1) as h:
        unit = h.engine.units["main"]
        [table] = tables_of(unit.folds)
        plan = explain_view(unit.pipeline, table, describe_table(table), prepared=True).to_json()
        [fold] = [stage for stage in plan["stages"] if stage["stage"] == "fold"]
        assert {each["name"]: each["evaluator"] for each in fold["outputs"]} == {
            "k": "store",
            "loud": "spark",
            "n": "store",
            "number": "spark",
            "tens": "spark",
        }
        assert fold["having_evaluator"] == "spark"
        assert fold["evaluated"]["s0"] == "upper(a0)"
        text = explanation_text(plan)
        assert "evaluator  store, when they are read: k, n\n" in text
        assert "evaluator  spark, in the turn: loud, number, tens, HAVING\n" in text


EVENTS = """
CREATE STREAM events (k STRING, t STRING, x BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS) WITH (topic = 'events');
CREATE MATERIALIZED VIEW totals AS
SELECT k, upper(max(t)) AS loud, CAST(max(t) AS INT) AS number, sum(x) AS total
FROM events GROUP BY k HAVING reverse(min(t)) <> 'oob';
CREATE MATERIALIZED VIEW windowed WITH (retention = '30 seconds') AS
SELECT window.start AS start, k, lower(max(t)) AS low, 100 / (count(*) - 2) AS share
FROM events GROUP BY window(ts, '10 seconds'), k;
CREATE MATERIALIZED VIEW visits AS
SELECT window.start AS start, k, reverse(max(t)) AS back, CAST(min(t) AS INT) AS number
FROM events GROUP BY session_window(ts, '5 seconds'), k;
CREATE SINK told FROM visits WITH (topic = 'visits.rows', mode = 'retract');
"""


def values(event_time: datetime) -> st.SearchStrategy[Value]:
    return st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", None]),
            "t": st.sampled_from(["1", "22", "boo", None]),
            "x": st.sampled_from([0, 1, -1, None]),
            "ts": st.just(event_time.isoformat()),
        }
    )


@any_split(1, soaked=4)
@given(script=rich_scripts(values, streams=["events"], min_records=6))
def test_values_are_the_same_whatever_the_cut(script: Script) -> None:
    assert_the_cuts_do_not_show(script, EVENTS, Settings(split_folds=2))
