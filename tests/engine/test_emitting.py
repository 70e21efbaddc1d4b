"""When a sink is due: only while changes wait for it, and no more often than its view says."""

import pytest

from headrace.engine.turn.emitting import NEVER_US, Emitting
from headrace.sql import parse_project

PROJECT = parse_project(
    {
        "test.sql": """
        CREATE STREAM clicks (x INT) WITH (topic = 'clicks');
        CREATE MATERIALIZED VIEW total WITH (emit = 'every 10 seconds') AS
        SELECT sum(x) AS total FROM clicks;
        CREATE SINK totals FROM total WITH (topic = 'totals.rows');
        CREATE MATERIALIZED VIEW seen AS SELECT count(*) AS n FROM clicks;
        CREATE SINK seen_rows FROM seen WITH (topic = 'seen.rows');
        """
    }
)


def test_a_sink_is_due_while_changes_wait_and_its_time_is_over() -> None:
    now_us = 0
    views = {view.name: view for view in PROJECT.views}
    emitting = Emitting(PROJECT.sinks, views, lambda: now_us)
    assert (emitting.due(), emitting.due_in_us()) == (set(), NEVER_US)
    emitting.note_changed(frozenset({"total", "seen"}))
    assert emitting.due() == {"totals.rows", "seen.rows"}
    with emitting.telling(emitting.due()):
        pass
    assert (emitting.due(), emitting.due_in_us()) == (set(), NEVER_US)

    emitting.note_changed(frozenset({"total"}))
    assert (emitting.due(), emitting.due_in_us()) == (set(), 10_000_000)
    emitting.note_changed(frozenset({"seen"}))
    assert emitting.due() == {"seen.rows"}
    with pytest.raises(ZeroDivisionError), emitting.telling({"seen.rows"}):
        raise ZeroDivisionError
    assert emitting.due() == {"seen.rows"}
    with emitting.telling({"seen.rows"}):
        emitting.note_changed(frozenset({"seen"}))  # another unit's commit, perhaps not told
    assert emitting.due() == {"seen.rows"}
    with emitting.telling({"seen.rows"}):
        pass
    now_us = 9_999_999
    assert (emitting.due(), emitting.due_in_us()) == (set(), 1)
    now_us = 12_000_000
    assert emitting.due() == {"totals.rows"}


def test_every_sink_is_due_when_the_engine_ends() -> None:
    emitting = Emitting(PROJECT.sinks, {view.name: view for view in PROJECT.views}, lambda: 0)
    emitting.note_told({"totals.rows"})
    emitting.note_changed(frozenset({"total"}))
    assert emitting.due() == set()
    emitting.ending = True
    assert emitting.due() == {"totals.rows"}
