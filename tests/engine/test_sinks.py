"""Sinks are told how rows change, once whatever crashes, and what they hold is the view.

Method: what each turn tells is written out by hand; and a reader that folds the topic, as a user
of it would, has to end with the very rows of the view.
"""

import json
import threading
from datetime import datetime

import pytest
from told import held, held_rows, told

from headrace.engine.running import run_engine
from headrace.errors import DefinitionError
from headrace.observe.status import take_status
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark

STREAM = """
CREATE STREAM clicks (k STRING, x INT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS) WITH (topic = 'clicks');
"""
PER_MINUTE = """
CREATE MATERIALIZED VIEW per_minute WITH (emit = '{emit}'{options}) AS
SELECT window.start AS minute, k, count(*) AS n, sum(x) AS total
FROM clicks GROUP BY window(ts, '1 minute'), k;
CREATE SINK out FROM per_minute WITH (topic = 'rows', mode = '{mode}');
"""


def project(emit: str = "changes", mode: str = "upsert", options: str = "") -> str:
    return STREAM + PER_MINUTE.format(emit=emit, mode=mode, options=options)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{text}+00:00")


def click(h: Harness, time: str, k: str | None = "a", x: int = 1, partition: int = 0) -> None:
    h.append("clicks", [{"k": k, "x": x, "ts": at(time)}], partition=partition)


def minute(
    time: str, n: int, total: int, *, closed: bool = False, k: str = "a"
) -> dict[str, object]:
    start = f"2026-01-01T{time}:00Z"
    return {"minute": start, "k": k, "n": n, "total": total, "_closed": closed}


KEY = {"minute": "2026-01-01T12:00:00Z", "k": "a"}


def test_every_change_is_told_under_the_key_of_its_row() -> None:
    with harness(project(), partitions=1) as h:
        click(h, "12:00:10")
        h.turn()
        assert told(h, "rows") == [(KEY, minute("12:00", 1, 1))]
        click(h, "12:00:20", x=4)
        click(h, "12:01:00", k=None, x=7)
        h.turn()
        nobody = {"minute": "2026-01-01T12:01:00Z", "k": None}
        other = {**minute("12:01", 1, 7), "k": None}
        assert told(h, "rows")[1:] == [
            (KEY, minute("12:00", 2, 5, closed=True)),
            (nobody, other),
        ]
        h.turn()
        assert len(told(h, "rows")) == 3


def test_what_no_longer_holds_is_retracted_first() -> None:
    with harness(project(mode="retract"), partitions=1) as h:
        click(h, "12:00:10")
        h.turn()
        click(h, "12:00:20", x=4)
        h.turn()
        click(h, "12:01:00", k="b")
        h.turn()
        before, after = minute("12:00", 1, 1), minute("12:00", 2, 5)
        closed = minute("12:00", 2, 5, closed=True)
        other = {"minute": "2026-01-01T12:01:00Z", "k": "b"}
        assert told(h, "rows") == [
            (KEY, {"_change": "insert", **before}),
            (KEY, {"_change": "retract", **before}),
            (KEY, {"_change": "insert", **after}),
            (KEY, {"_change": "retract", **after}),
            (KEY, {"_change": "insert", **closed}),
            (other, {"_change": "insert", **minute("12:01", 1, 1, k="b")}),
        ]


def test_final_rows_are_told_when_they_close_and_when_they_are_corrected() -> None:
    options = ", allowed_lateness = '10 minutes'"
    with harness(project("final", "retract", options), partitions=1) as h:
        click(h, "12:00:10")
        click(h, "12:00:59")
        h.turn()
        assert told(h, "rows") == []
        click(h, "12:01:00", k="b")
        h.turn()
        closed = minute("12:00", 2, 2, closed=True)
        assert told(h, "rows") == [(KEY, {"_change": "insert", **closed})]
        click(h, "12:00:30", x=5)
        h.turn()
        assert told(h, "rows")[1:] == [
            (KEY, {"_change": "retract", **closed}),
            (KEY, {"_change": "insert", **minute("12:00", 3, 7, closed=True)}),
        ]


def test_now_and_then_means_one_change_however_many_there_were() -> None:
    with harness(project("every 10 seconds", "retract"), partitions=1) as h:
        click(h, "12:00:10")
        h.turn()
        first = minute("12:00", 1, 1)
        assert told(h, "rows") == [(KEY, {"_change": "insert", **first})]
        for x in (2, 3):
            click(h, "12:00:11", x=x)
            h.turn()
        h.restart()  # what was kept is in the store; a new engine tells it with its first turn
        h.turn()
        last = minute("12:00", 3, 6)
        assert told(h, "rows")[1:] == [
            (KEY, {"_change": "retract", **first}),
            (KEY, {"_change": "insert", **last}),
        ]
        click(h, "12:00:12", x=10)
        h.turn()
        assert len(told(h, "rows")) == 3
        h.wall("+10 seconds")
        h.turn()  # nothing to read: it is time
        assert told(h, "rows")[-1] == (KEY, {"_change": "insert", **minute("12:00", 4, 16)})
        assert not h.turn()
        click(h, "12:00:13")
        run_engine(h.engine, threading.Event(), once=True)  # nobody would tell it afterwards
        assert told(h, "rows")[-1] == (KEY, {"_change": "insert", **minute("12:00", 5, 17)})


def test_envelopes_tell_updates_from_rows_that_come_and_go() -> None:
    with harness(project(mode="debezium", options=", retention = '1 minute'"), partitions=1) as h:
        for time, x in (("12:00:10", 1), ("12:00:20", 4), ("12:03:00", 2)):
            click(h, time, x=x)
            h.turn()
        found = [
            (key, value and (value["op"], value["before"], value["after"]))
            for key, value in told(h, "rows")
        ]
        first, second = minute("12:00", 1, 1), minute("12:00", 2, 5)
        other = {"minute": "2026-01-01T12:03:00Z", "k": "a"}
        assert found == [
            (KEY, ("c", None, first)),
            (KEY, ("u", first, second)),
            (KEY, ("d", second, None)),
            (KEY, None),  # compaction forgets the key
            (other, ("c", None, minute("12:03", 1, 2))),
        ]
        source = told(h, "rows")[0][1]["source"]
        assert (source["connector"], source["view"]) == ("headrace", "per_minute")


def test_a_sink_may_name_its_own_key() -> None:
    own = STREAM + (
        "CREATE MATERIALIZED VIEW totals AS SELECT k, sum(x) AS total FROM clicks GROUP BY k;"
        "CREATE SINK by_total FROM totals WITH (topic = 'a', mode = 'debezium', key = 'total');"
        "CREATE SINK by_both FROM totals WITH (topic = 'b', key = 'total, k');"
    )
    with harness(own, partitions=1) as h:
        for x in (1, 2):
            click(h, "12:00:10", x=x)
            h.turn()
        one, three = ({"k": "a", "total": each, "_closed": False} for each in (1, 3))
        envelopes = [
            (key, value and (value["op"], value["before"], value["after"]))
            for key, value in told(h, "a")
        ]
        assert envelopes == [
            ({"total": 1}, ("c", None, one)),
            ({"total": 1}, ("d", one, None)),
            ({"total": 1}, None),
            ({"total": 3}, ("c", None, three)),
        ]
        keys = [{"total": each, "k": "a"} for each in (1, 1, 3)]
        assert told(h, "b") == list(zip(keys, (one, None, three), strict=True))
        with pytest.raises(DefinitionError) as refused:
            h.restart(own.replace("'total, k'", "'k, total'"))
        assert "which holds rows of totals in mode 'upsert' with the key total, k" in str(
            refused.value
        )


def test_a_crash_at_any_step_tells_nothing_twice() -> None:
    points = ["after_plan", "before_commit", "after_commit", "sink_before_append"]
    points.append("sink_after_append")
    emits = {"at_once": "changes", "each_second": "every 1 second", "at_last": "final"}
    views = [
        PER_MINUTE.format(emit=emit, mode="retract", options="")
        .replace("per_minute", name)
        .replace("SINK out", f"SINK {name}_out")
        .replace("'rows'", f"'{name}.rows'")
        for name, emit in emits.items()
    ]
    with harness(STREAM + "".join(views), partitions=1) as h:
        for round, point in enumerate(points * 2):  # the second time on what the others left
            click(h, f"12:0{round}:10", x=round)
            click(h, f"12:0{round}:50", k="b")
            h.crash(point)
            h.wall("+1 second")
            h.turn()
            assert h.crashed, f"{point} was not reached"
            h.restart()
        h.wall("+1 second")
        while h.turn():
            h.wall("+1 second")
        for name, emit in emits.items():
            assert held(h, f"{name}.rows") == held_rows(h, name, closed=emit == "final"), name


def test_a_new_sink_is_told_of_every_row_and_another_topic_begins_anew() -> None:
    with harness(
        STREAM + PER_MINUTE.split("CREATE SINK")[0].format(emit="changes", options="")
    ) as h:
        click(h, "12:00:10")
        h.turn()
        h.restart(project())
        h.turn()  # nothing to read: for the new sink's sake
        assert told(h, "rows") == [(KEY, minute("12:00", 1, 1))]
        h.restart(project())
        assert not h.turn()
        h.restart(project().replace("'rows'", "'others'"))
        h.turn()
        assert told(h, "others") == [(KEY, minute("12:00", 1, 1))]
        click(h, "12:00:11")
        while h.turn():
            pass
        assert len(told(h, "rows")) == 1
        assert len(told(h, "others")) == 2


@pytest.mark.parametrize("emit", ["changes", "every 1 minute", "final"])
def test_a_view_that_is_edited_tells_the_difference(emit: str) -> None:
    with harness(project(emit, "retract"), partitions=1) as h:
        for time in ("12:00:10", "12:00:20", "12:01:10", "12:02:10"):
            click(h, time, x=2)
        while h.turn():
            pass
        click(h, "12:02:20", x=2)
        h.turn()
        h.restart(project(emit, "retract").replace("sum(x) AS total", "sum(x + 1) AS total"))
        h.turn()
        h.wall("+1 minute")
        while h.turn():
            pass
        assert held(h, "rows") == held_rows(h, "per_minute", closed=emit == "final")
        assert any(row["total"] == 6 for row in h.rows("per_minute"))


def test_rows_that_retention_ends_for_leave_the_sink_too() -> None:
    with harness(project(options=", retention = '1 minute'"), partitions=1) as h:
        for time in ("12:00:10", "12:01:10", "12:02:10"):
            click(h, time)
            h.turn()
        assert (KEY, None) in told(h, "rows")
        assert held(h, "rows") == held_rows(h, "per_minute")
        assert len(held_rows(h, "per_minute")) == 2


def test_final_rows_that_close_and_leave_in_one_turn_are_told_all_the_same() -> None:
    kinds = {
        "minutes": ("1 minute", "window(ts, '1 minute')"),
        "gone": ("0 seconds", "window(ts, '1 minute')"),
        "hops": ("0 seconds", "window(ts, '1 minute', '30 seconds')"),
        "visits": ("20 seconds", "session_window(ts, '20 seconds')"),
    }
    views = "".join(
        f"CREATE MATERIALIZED VIEW {name} WITH (emit = 'final', retention = '{retention}') AS "
        f"SELECT window.start AS start, count(*) AS n FROM clicks GROUP BY {window};"
        f"CREATE SINK {name}_out FROM {name} WITH (topic = '{name}.rows', mode = 'retract');"
        for name, (retention, window) in kinds.items()
    )
    with harness(STREAM + views, partitions=1) as h:
        for time in ("12:00:10", "12:01:10", "12:02:10", "12:03:10", "12:03:15"):
            click(h, time)
        h.turn()
        inserted = {
            name: sorted(
                row["start"][11:19]
                for _, row in told(h, f"{name}.rows")
                if row["_change"] == "insert" and row["_closed"]
            )
            for name in kinds
        }
        minutes = ["12:00:00", "12:01:00", "12:02:00"]
        assert inserted == {
            "minutes": minutes,
            "gone": minutes,
            "hops": sorted(["11:59:30", "12:00:30", "12:01:30", *minutes]),
            "visits": ["12:00:10", "12:01:10", "12:02:10"],
        }
        for name in kinds:
            assert held(h, f"{name}.rows") == held_rows(h, name, closed=True)


def test_a_row_that_having_takes_away_leaves_a_tombstone() -> None:
    small = STREAM + (
        "CREATE MATERIALIZED VIEW small AS SELECT k, count(*) AS n FROM clicks GROUP BY k "
        "HAVING count(*) < 3; CREATE SINK out FROM small WITH (topic = 'rows');"
    )
    with harness(small, partitions=1) as h:
        for _ in range(3):
            click(h, "12:00:10")
            h.turn()
        row = {"k": "a", "n": 2, "_closed": False}
        assert told(h, "rows")[1:] == [({"k": "a"}, row), ({"k": "a"}, None)]


def test_windows_that_overlap_are_told_one_by_one() -> None:
    hopping = project().replace("window(ts, '1 minute')", "window(ts, '1 minute', '30 seconds')")
    with harness(hopping, partitions=1) as h:
        click(h, "12:00:10")
        h.turn()
        assert [key["minute"] for key, _ in told(h, "rows")] == [
            "2026-01-01T11:59:30Z",
            "2026-01-01T12:00:00Z",
        ]
        for time in ("12:00:40", "12:02:00", "12:00:45", "12:05:00"):
            click(h, time)
            h.turn()
        assert held(h, "rows") == held_rows(h, "per_minute")


def test_every_type_is_told_so_that_it_can_be_read_back() -> None:
    columns = """s STRING, d DECIMAL(10,2), i DECIMAL(20,0), f DOUBLE, g FLOAT, b BOOLEAN, y BINARY,
      day DATE, a ARRAY<TIMESTAMP>, r STRUCT<x: DECIMAL(4,1), s: STRING>, ts TIMESTAMP,
      m MAP<STRING, DOUBLE>, my MAP<DATE, BINARY>, md MAP<DECIMAL(4,1), DECIMAL(20,2)>,
      mt MAP<BOOLEAN, STRUCT<t: TIMESTAMP, l: ARRAY<MAP<TIMESTAMP, DATE>>>>"""
    names = "s, d, i, f, g, b, y, day, a, r, ts, m, my, md, mt"
    types = f"""
    CREATE STREAM clicks ({columns}) WITH (topic = 'clicks');
    CREATE MATERIALIZED VIEW v AS SELECT {names}, CAST('NaN' AS DOUBLE) AS nan,
      map('x', CAST('-Infinity' AS FLOAT), 'y', 1.5F) AS some FROM clicks;
    CREATE SINK out FROM v WITH (topic = 'rows');
    CREATE STREAM again ({columns}, nan STRING, some MAP<STRING, STRING>) WITH (topic = 'rows');
    CREATE MATERIALIZED VIEW w AS SELECT {names}, nan, some FROM again;
    """
    with harness(types, partitions=1) as h:
        full = {
            "s": 'é"\\\n', "d": "12.50", "i": 12345678901234567890, "f": 1e300, "g": 0.1, "b": True,
            "y": "AAH/", "day": "2026-02-28", "a": ["2026-01-01T00:00:00.000001Z", None],
            "r": {"x": "1.5", "s": None}, "ts": "1969-12-31T23:59:59Z",
            "m": {"é": 0.1, "n": None}, "my": {"2026-02-28": "AAH/"}, "md": {"1.5": "12.50"},
            "mt": {"true": {"t": "2026-01-01T00:00:00.000001Z",
                            "l": [{"2026-01-01T00:00:00Z": "2026-02-28"}]}},
        }  # fmt: skip
        h.append("clicks", [full, {}, {"r": {}, "a": [], "m": {}}])
        while h.turn():
            pass
        wanted = [
            {**row, "nan": "nan", "some": [("x", "-inf"), ("y", "1.5")]} for row in h.rows("v")
        ]
        assert repr(h.rows("w")) == repr(wanted)
        assert [h.counters(name)["accepted"] for name in ("clicks", "again")] == [3, 3]


def test_a_row_that_cannot_be_told_sets_its_view_aside_alone() -> None:
    views = project() + "CREATE MATERIALIZED VIEW wide AS SELECT repeat(k, x) AS w FROM clicks;"
    wide = "CREATE SINK wide_rows FROM wide WITH (topic = 'wide');"
    with harness(views + wide, partitions=1) as h:
        for x in (1, 1_100_000, 3):
            click(h, "12:00:10", x=x)
            h.turn()
        assert held(h, "rows") == held_rows(h, "per_minute")
        assert len(told(h, "wide")) == 1
        with h.engine.tools.store.open() as snapshot:
            reasons = {each.name: each.reason for each in snapshot.holdings()}
        assert "1048576 is the most that the log takes" in reasons["wide"]
        h.restart(views)
        while h.turn():
            pass
        assert sorted(len(row["w"]) for row in h.rows("wide")) == [1, 3, 1_100_000]


def test_a_store_that_was_lost_tells_everything_anew() -> None:
    with harness(project(), partitions=1) as h:
        click(h, "12:00:10")
        h.turn()
        h.lose_store()
        h.restart()
        click(h, "12:00:20")
        while h.turn():
            pass
        assert held(h, "rows") == held_rows(h, "per_minute")
        assert len(told(h, "rows")) == 2


def test_status_shows_sinks() -> None:
    with harness(project(), partitions=1) as h:
        click(h, "12:00:10")
        h.turn()
        with h.engine.tools.store.open() as snapshot:
            status = take_status("test", snapshot, h.log, h.engine.settings)
        [sink] = status.sinks
        assert (sink.name, sink.view, sink.topic, sink.mode) == (
            "out",
            "per_minute",
            "rows",
            "upsert",
        )
        assert sink.version == status.views[0].version
        assert status.sink_rows == 0
        assert json.dumps(status.to_json())
