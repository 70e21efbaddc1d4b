"""When a sink is due: for the version that it is told of, and only while something waits."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from headrace.engine.turn.emitting import NEVER_US, Emitting
from headrace.ledger.entries import Emission, When
from headrace.plan.stages import Fold
from headrace.sql import parse_project

PROJECT = parse_project(
    {
        "test.sql": """
        CREATE STREAM clicks (x INT) WITH (topic = 'clicks');
        CREATE MATERIALIZED VIEW total WITH (emit = 'every 10 seconds') AS
        SELECT sum(x) AS total FROM clicks;
        CREATE SINK totals FROM total WITH (topic = 'totals');
        """
    }
)


def version(name: str) -> Fold:
    fold: Any = SimpleNamespace(name="total", version=name, table=None)
    return cast(Fold, fold)


def test_rows_wait_for_the_version_that_a_sink_is_told_of() -> None:
    emitting = Emitting(PROJECT.sinks, {view.name: view for view in PROJECT.views}, lambda: 0)
    old, new = version("old"), version("new")
    emitting.begin({"total": new}, [])
    assert emitting.due_in_us([new]) == NEVER_US
    emitting.wait(["totals"])
    assert emitting.due_in_us([new]) == 0
    # Or it would take turns without end, and tell nothing.
    assert emitting.due_in_us([old]) == NEVER_US


def test_rows_that_were_kept_are_due_when_their_time_is_over() -> None:
    now_us = 0
    views = {view.name: view for view in PROJECT.views}
    emitting = Emitting(PROJECT.sinks, views, lambda: now_us)
    fold = version("new")
    emitting.begin({"total": fold}, [])
    table: Any = SimpleNamespace(view="total", version="new")
    told = Emission("totals", "totals", "upsert", table, 0, 0, final=False, when=When.WITH_KEPT)
    emitting.note_emitted([told])
    emitting.note_emitted([replace(told, when=When.LATER)])
    assert emitting.due_in_us([fold]) == 10_000_000
    now_us = 9_999_999
    assert emitting.due_in_us([fold]) == 1
    now_us = 12_000_000
    assert emitting.due_in_us([fold]) == 0
    emitting.note_emitted([told])
    assert emitting.due_in_us([fold]) == NEVER_US
