"""A view that is paused keeps its rows, and loses nothing when it goes on.

Method: two views over one stream; one of them is paused while records come, across turns, a
restart and a crash. In the end it says what the other says, and the audit holds.
"""

import json

import pytest

from headrace.engine.versions.pausing import pause_sink, pause_view, resume_sink, resume_view
from headrace.errors import UsageError
from headrace.testing import harness
from headrace.testing.harness import Harness

pytestmark = pytest.mark.spark

PROJECT = """
CREATE STREAM clicks (id STRING NOT NULL, page STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS) WITH (unique = 'id', unique_within = '1 hour');
CREATE MATERIALIZED VIEW pages AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
"""


def click(number: int, page: str = "/") -> dict[str, str]:
    return {"id": str(number), "page": page, "ts": f"2026-01-01T12:{number:02}:00Z"}


def counts(h: Harness) -> tuple[dict[str, int], int]:
    pages = {row["page"]: row["n"] for row in h.rows("pages")}
    return pages, sum(row["n"] for row in h.rows("per_minute"))


def states(h: Harness) -> dict[str, str]:
    with h.engine.tools.store.open() as snapshot:
        return {held.name: held.state for held in snapshot.holdings() if held.kind == "view"}


def told(h: Harness) -> dict[str, list[int]]:
    """Return the counts that a sink was told of each page, in order."""
    found: dict[str, list[int]] = {}
    for record in h.topic("told"):
        row = json.loads(record["value"])
        found.setdefault(row["page"], []).append(row["n"])
    return found


def catch_up(h: Harness) -> None:
    for _ in range(4):
        h.turn()


def test_a_paused_view_keeps_its_rows_and_loses_nothing() -> None:
    with harness(PROJECT) as h:
        h.append("clicks", [click(1), click(2)], partition=0)
        h.turn()
        pause_view(h.engine, "pages")
        pause_view(h.engine, "pages")  # again: nothing changes
        assert states(h) == {"pages": "paused", "per_minute": "live"}
        h.append("clicks", [click(3), click(3), click(4, "/shop")], partition=0)
        catch_up(h)
        assert counts(h) == ({"/": 2}, 4)
        h.restart()
        catch_up(h)
        assert states(h)["pages"] == "paused"
        assert counts(h) == ({"/": 2}, 4)
        resume_view(h.engine, "pages")
        h.append("clicks", [click(2), click(5)], partition=0)  # 2 is a duplicate, also to it
        catch_up(h)
        assert states(h) == {"pages": "live", "per_minute": "live"}
        assert counts(h) == ({"/": 4, "/shop": 1}, 5)
        resume_view(h.engine, "pages")  # it is not paused: nothing changes
        assert states(h)["pages"] == "live"
        h.audit()


def test_a_view_that_catches_up_can_be_paused_again_and_a_crash_changes_nothing() -> None:
    with harness(PROJECT) as h:
        h.append("clicks", [click(1)], partition=0)
        h.turn()
        pause_view(h.engine, "pages")
        h.append("clicks", [click(number) for number in range(2, 8)], partition=0)
        h.turn()
        resume_view(h.engine, "pages")
        assert states(h)["pages"] == "building"
        pause_view(h.engine, "pages")
        h.append("clicks", [click(8)], partition=0)
        h.crash("before_commit")
        h.turn()
        assert h.crashed
        h.restart()
        catch_up(h)
        assert states(h)["pages"] == "paused"
        resume_view(h.engine, "pages")
        catch_up(h)
        assert counts(h) == ({"/": 8}, 8)
        h.audit()


def test_what_is_no_view_cannot_be_paused() -> None:
    with (
        harness(PROJECT) as h,
        pytest.raises(UsageError, match=r"there is no view page .*did you mean pages"),
    ):
        pause_view(h.engine, "page")


def test_a_paused_sink_is_told_nothing_and_then_all_of_it() -> None:
    with harness(PROJECT + "CREATE SINK told FROM pages WITH (topic = 'told');") as h:
        h.append("clicks", [click(1)], partition=0)
        h.turn()
        assert told(h) == {"/": [1]}
        pause_sink(h.engine, "told")
        h.append("clicks", [click(2)], partition=0)
        h.turn()
        h.restart()  # it stays paused
        h.append("clicks", [click(3, "/shop")], partition=0)
        h.turn()
        assert told(h) == {"/": [1]}
        with h.engine.tools.store.open() as snapshot:
            assert snapshot.waiting_changes()["told"] == 3  # a row that leaves, and two that come
        resume_sink(h.engine, "told")
        h.append("clicks", [click(4)], partition=0)
        h.turn()
        assert told(h) == {"/": [1, 2, 3], "/shop": [1]}
        h.audit()


def test_a_paused_sink_that_is_edited_goes_on() -> None:
    sink = "CREATE SINK told FROM pages WITH (topic = 'told');"
    with harness(PROJECT + sink) as h:
        pause_sink(h.engine, "told")
        h.append("clicks", [click(1)], partition=0)
        h.turn()
        assert h.topic("told") == []
        edited = PROJECT.replace("VIEW pages AS", "VIEW pages WITH (emit = 'every 1 second') AS")
        h.restart(edited + sink)
        catch_up(h)
        assert told(h) == {"/": [1]}
        with pytest.raises(UsageError, match="there is no sink tell"):
            pause_sink(h.engine, "tell")
