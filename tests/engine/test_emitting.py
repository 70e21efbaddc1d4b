"""When a sink is due: for the version that it is told of, and only while something waits."""

from types import SimpleNamespace
from typing import Any, cast

from headrace.engine.turn.emitting import Emitting
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
    assert not emitting.is_due([new])
    emitting.wait(["totals"])
    assert emitting.is_due([new])
    assert not emitting.is_due([old])  # it would take turns without end, and tell nothing
