"""A reader of a view's changes has the view, whatever the engine does meanwhile.

Method: a story over all windows, with crashes at every step, restarts and edits; after each, a
reader that folds changes has to hold the very rows of the view.
"""

from collections import Counter
from typing import Any

import pytest
from soaking import SOAKING

from headrace.errors import TokenRefused, TokenTooOld
from headrace.observe.status import take_status
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM clicks (k STRING, x INT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS) WITH (topic = 'clicks');
"""
WINDOWS = {
    "minutes": "window(ts, '1 minute')",
    "hops": "window(ts, '1 minute', '30 seconds')",
    "steps": "cumulate(ts, '30 seconds', '1 minute')",
    "visits": "session_window(ts, '20 seconds')",
}
VIEWS = "".join(
    f"CREATE MATERIALIZED VIEW {name} WITH (retention = '2 minutes') AS SELECT window.start AS "
    f"start, window.end AS end, k, count(*) AS n, sum(x) AS total FROM clicks GROUP BY {window}, k;"
    for name, window in WINDOWS.items()
)
OTHERS = """
CREATE MATERIALIZED VIEW totals AS SELECT k, sum(x) AS total FROM clicks GROUP BY k;
CREATE MATERIALIZED VIEW large AS SELECT k, x FROM clicks WHERE x > 2;
"""
NAMES = (*WINDOWS, "totals", "large")


def click(h: Harness, time: str, k: str | None, x: int) -> None:
    h.append("clicks", [{"k": k, "x": x, "ts": f"2026-01-01T{time}Z"}], partition=0)


class Held:
    """What readers of all views hold."""

    def __init__(self) -> None:
        self.rows: dict[str, Counter[str]] = {name: Counter() for name in NAMES}

    def take(self, h: Harness) -> None:
        for view in NAMES:
            for change in h.changes(view):
                sign = change.pop("_sign")
                rows = self.rows[view]
                if sign == 0:
                    rows[text({**change, "_closed": False})] -= 1
                rows[text(change)] += sign or 1
                assert all(count in (0, 1) for count in rows.values()), change
            shown = Counter(text(row) for row in h.rows(view, meta=True))
            assert +self.rows[view] == shown, view


def text(row: dict[str, Any]) -> str:
    kept = {name: value for name, value in row.items() if name not in ("_events", "_key")}
    return str(sorted(kept.items()))


@pytest.mark.soak
@pytest.mark.parametrize("gears", ["both", *(["short", "long"] if SOAKING else [])])
def test_what_a_reader_folds_is_the_view(gears: str) -> None:
    points = ["after_plan", "after_fold", "before_commit", "after_commit", "before_publish", None]
    with harness(STREAM + VIEWS + OTHERS, partitions=1) as h:
        held = Held()
        held.take(h)
        times = ["00:10", "00:25", "00:50", "01:10", "00:59", "02:30", "05:00", "05:01"]
        for number, time in enumerate(times):
            click(h, f"12:{time}", "ab"[number % 2], number)
            click(h, f"12:{time}", None, 1)
            point = points[number % len(points)]
            gear = ("short", "long")[number % 2] if gears == "both" else gears
            if point is not None:
                h.crash(point)
            h.turn(gear=gear)
            if h.crashed:
                h.restart()
                h.turn(gear=gear)
            held.take(h)
        h.close_time()
        held.take(h)
        h.audit()


def test_an_edit_is_a_change_too() -> None:
    def minutes(total: str, more: str = "") -> str:
        return STREAM + (
            f"CREATE MATERIALIZED VIEW minutes AS SELECT window.start AS start, k, {total} AS total"
            f"{more} FROM clicks GROUP BY window(ts, '1 minute'), k;"
        )

    with harness(minutes("sum(x)"), partitions=1) as h:
        click(h, "12:00:10", "a", 1)
        click(h, "12:00:10", "b", 0)
        h.turn()
        follower = h.follow("minutes")
        token = str(follower.token)
        click(h, "12:00:20", "a", 2)
        h.turn()
        h.restart(minutes("sum(x * 2)"))
        while h.turn():
            pass
        follower = h.follow("minutes", after=token)
        page = follower.read()
        found = [(row["_sign"], row["k"], row["total"]) for row in page.rows.to_pylist()]
        # The row of b looks the same to both versions.
        assert found == [(-1, "a", 1), (1, "a", 3), (-1, "a", 3), (1, "a", 6)]
        assert not page.reset
        token = str(page.token)
        h.restart(minutes("sum(x * 2)", ", count(*) AS n"))
        while h.turn():
            pass
        follower = h.follow("minutes", after=token)
        page = follower.read()
        assert page.reset
        assert [row["n"] for row in follower.rows.to_pylist()] == [2, 1]
        h.lose_store()
        h.restart()
        while h.turn():
            pass
        with pytest.raises(TokenRefused) as refused:
            h.follow("minutes", after=token)
        assert "is a token of another store" in str(refused.value)


def test_a_view_may_always_keep_its_changes() -> None:
    views = STREAM + (
        "CREATE MATERIALIZED VIEW kept WITH (changes = 'always') AS SELECT k, sum(x) AS total "
        "FROM clicks GROUP BY k;"
        "CREATE MATERIALIZED VIEW other AS SELECT k, count(*) AS n FROM clicks GROUP BY k;"
    )
    with harness(views, partitions=1) as h:
        click(h, "12:00:10", "a", 1)
        h.turn()
        store = h.engine.tools.store
        with store.open() as snapshot:
            tokens = {view: str(snapshot.token(view)) for view in ("kept", "other")}
        click(h, "12:00:20", "a", 2)
        h.turn()
        page = h.follow("kept", after=tokens["kept"]).read()
        assert [(row["_sign"], row["total"]) for row in page.rows.to_pylist()] == [(-1, 1), (1, 3)]
        with pytest.raises(TokenTooOld):
            h.follow("other", after=tokens["other"])
        with store.open() as snapshot:
            status = take_status("test", snapshot, h.log, h.engine.settings)
        [kept] = status.changes
        assert (kept.view, kept.rows, kept.readers, kept.always) == ("kept", 3, 1, True)
        h.restart(views.replace(" WITH (changes = 'always')", ""))
        assert h.rows("kept") == [{"k": "a", "total": 3}]  # nothing is built anew for it
        with h.engine.tools.store.open() as snapshot:
            assert not snapshot.kept_changes()["kept"].always
