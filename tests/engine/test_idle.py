"""Idle partitions: the wall clock decides when they are marked, the log remembers it.

Method: rows, late sets and closed flags worked out by hand; then the store is thrown away and the
same log is replayed without any time passing, and everything has to be the same.
"""

from datetime import UTC, datetime

import pytest
from agreement import assert_agrees_with_the_reference

from headrace.engine.engine import Engine
from headrace.engine.spark.session import start_spark
from headrace.engine.turn import planning
from headrace.errors import EngineFenced, PositionLost, Unreachable, UsageError
from headrace.log import EmbeddedLog, Producer, TopicSettings, checks, records
from headrace.log.embedded.topics import delete_topic_folder
from headrace.observe.status import take_status
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark

CLICKS = """
CREATE STREAM clicks (id STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS) WITH (topic = 'clicks', idle_timeout = '1 minute');
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
"""


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{text}+00:00")


def click(h: Harness, time: str, partition: int, *, arrival: str | None = None) -> None:
    moment = at(arrival or time)
    h.append("clicks", [{"id": "a", "ts": at(time)}], partition=partition, arrival=moment)


def minutes(h: Harness) -> dict[str, tuple[int, bool]]:
    """Return each minute's count and whether it is closed."""
    return {
        f"{row['minute']:%H:%M}": (row["n"], row["_closed"])
        for row in h.rows("per_minute", meta=True)
    }


def turn_all(h: Harness, *, gear: str | None = None) -> None:
    while h.turn(gear=gear):
        pass


def replay(h: Harness, *, gear: str) -> None:
    """Build everything anew from the log, without any time passing."""
    before = minutes(h), h.late("per_minute"), len(h.topic("headrace.time"))
    h.lose_store()
    h.restart()
    turn_all(h, gear=gear)
    # One record more: that a new engine has begun.
    assert (minutes(h), h.late("per_minute"), len(h.topic("headrace.time")) - 1) == before
    assert_agrees_with_the_reference(h)
    h.audit()


@pytest.mark.parametrize("gear", ["short", "long"])
def test_one_idle_partition_of_four_holds_nothing_up(gear: str) -> None:
    with harness(CLICKS) as h:
        for partition in range(4):
            click(h, "12:00:05", partition)
        turn_all(h, gear=gear)
        for time in ("12:01:20", "12:02:20", "12:03:20"):
            for partition in range(3):
                click(h, time, partition)
            turn_all(h, gear=gear)
        # Partition 3 stood still for three minutes; the others show 12:03:20, ten seconds ago.
        assert minutes(h) == {
            "12:00": (4, True),
            "12:01": (3, True),
            "12:02": (3, True),
            "12:03": (3, False),
        }
        click(h, "12:00:30", 3, arrival="12:03:30")  # it wakes up, with something old
        turn_all(h, gear=gear)
        assert [row["ts"] for row in h.late("per_minute")] == [at("12:00:30")]
        replay(h, gear=gear)


def test_the_last_window_closes_when_everything_stands_still() -> None:
    with harness(CLICKS) as h:
        click(h, "12:00:05", 0)
        click(h, "12:00:50", 1)
        turn_all(h)
        h.wall("+59 seconds")
        turn_all(h)
        assert minutes(h) == {"12:00": (2, False)}
        h.wall("+1 second")  # one minute idle: the largest clock, 12:00:50, plus that minute
        turn_all(h)
        assert minutes(h) == {"12:00": (2, True)}
        [marker] = [row for row in h.topic("headrace.time") if b"marks" in row["value"]]
        assert b'"why": "idle"' in marker["value"]
        click(h, "12:01:39", 0)  # in its window still, and it is not late
        turn_all(h)
        assert minutes(h)["12:01"] == (1, False)
        replay(h, gear="short")


def test_a_weekend_without_an_engine_and_a_log_out_of_reach_make_nothing_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: object) -> None:
        raise Unreachable("the broker is away")

    with harness(CLICKS) as h:
        click(h, "12:00:05", 0)
        turn_all(h)
        h.wall("+2 days")  # nobody looks meanwhile
        h.restart()
        click(h, "12:00:30", 0)
        turn_all(h)
        with monkeypatch.context() as patch:
            patch.setattr(h.log, "extents", away)
            h.wall("+5 minutes")
            with pytest.raises(Unreachable):
                h.turn()
        turn_all(h)  # it is back, and what producers have kept is on its way
        click(h, "12:00:40", 0, arrival="12:05:30")
        turn_all(h)
        assert minutes(h) == {"12:00": (3, False)}
        assert h.late("per_minute") == []
        replay(h, gear="long")


def test_an_added_partition_begins_at_the_smallest_clock() -> None:
    with harness(CLICKS, partitions=2) as h:
        for partition in range(2):
            click(h, "12:01:30", partition)
        click(h, "12:00:10", 0)  # late: its window is closed to it
        turn_all(h)
        assert h.counters("per_minute")["late"] == 1
        h.log.change_topic("clicks", partitions=3)
        click(h, "12:00:20", 2, arrival="12:01:31")  # and so it is in a partition without a past
        turn_all(h)
        assert h.counters("per_minute")["late"] == 2
        assert minutes(h) == {"12:01": (2, False)}
        replay(h, gear="short")


def test_a_partition_of_broken_records_alone_is_idle() -> None:
    with harness(CLICKS, partitions=2) as h:
        for time in ("12:00:05", "12:01:30", "12:02:30", "12:03:30"):
            click(h, time, 0)
            h.append("clicks", ["{"], partition=1)
            turn_all(h)
        assert minutes(h)["12:02"] == (1, True)
        assert h.counters("clicks")["dead"] == 4
        replay(h, gear="short")


def test_a_stream_whose_every_record_is_dead_has_no_time_and_loses_nothing() -> None:
    with harness(CLICKS, partitions=2) as h:
        for _ in range(3):
            h.append("clicks", ["{", "[]"], partition=0)
            h.wall("+10 minutes")
            turn_all(h)
        assert minutes(h) == {}
        assert len(h.dead("clicks")) == 6
        assert not any(b"marks" in row["value"] for row in h.topic("headrace.time"))
        replay(h, gear="short")


def test_an_arrival_that_jumps_forward_moves_no_clock_and_one_that_jumps_back_holds_it() -> None:
    with harness(CLICKS, partitions=1) as h:
        click(h, "12:00:05", 0)
        h.append(
            "clicks",
            [{"ts": at("12:00:20")}],
            partition=0,
            arrival=datetime(2026, 1, 2, tzinfo=UTC),
        )
        click(h, "12:00:30", 0, arrival="12:00:30")  # the log's clock was set right again
        turn_all(h)
        assert minutes(h) == {"12:00": (3, False)}
        h.append("clicks", [{"ts": at("12:05:00")}], partition=0, arrival=at("12:05:00"))
        click(h, "12:00:40", 0, arrival="12:05:01")
        turn_all(h)
        # An arrival never goes back within a partition, so it guards nothing for that day.
        assert h.counters("per_minute")["late"] == 1
        replay(h, gear="short")


def test_nobody_but_the_engine_writes_markers() -> None:
    with harness(CLICKS, partitions=1) as h:
        forged = records([b'{"v": 1, "epoch": 99, "check": "0"}'])
        with pytest.raises(UsageError, match="the engine alone writes there"):
            h.log.append("headrace.time", forged)
        with pytest.raises(UsageError, match="the engine alone writes there"):
            h.log.append("headrace.time", forged, partition=0, producer=Producer("me", 1, 1))
        for change in (
            lambda: h.log.delete_topic("headrace.time"),
            lambda: h.log.change_topic("headrace.time", partitions=2),
        ):
            with pytest.raises(UsageError, match="the engine alone writes there"):
                change()
        # Whoever gets around that, with another program on Kafka, is void, counted and shown.
        stolen = Producer("headrace.time", h.engine.epoch, 1_000)
        h.log.append("headrace.time", forged, partition=0, producer=stolen)
        click(h, "12:00:05", 0)
        turn_all(h)
        assert h.engine.planner.time.book.void == 1
        assert minutes(h) == {"12:00": (1, False)}
        replay(h, gear="short")


@pytest.mark.parametrize("how", ["retention", "deletion"])
def test_markers_that_were_removed_are_missed(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with harness(CLICKS, partitions=2) as h:
        click(h, "12:00:05", 0)
        turn_all(h)
        h.wall("+5 minutes")
        turn_all(h)
        # Around the log's own refusal, as another program could do it on Kafka.
        monkeypatch.setattr(checks, "refuse_closed", lambda *_: None)
        monkeypatch.setattr(checks, "check_time_topic", lambda *_: None)
        if how == "deletion":
            delete_topic_folder(h.folder / "log", "headrace.time")
        else:
            h.log.change_topic("headrace.time", settings=TopicSettings(retention_ms=1))
            later = EmbeddedLog(h.folder / "log", clock=lambda: 1 << 60)
            later.maintain()
            later.close()
        with pytest.raises(PositionLost, match="markers that were written are gone"):
            h.restart()


def test_only_markers_that_somebody_needs_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MAX_MARKS", 3)
    with harness(CLICKS, partitions=1) as h:
        for minute in range(0, 50, 5):
            click(h, f"12:{minute:02d}:05", 0)
            h.wall("+2 minutes")
            turn_all(h)
            h.wall("+2 minutes")
            turn_all(h)
        assert len(h.engine.planner.time.book) <= 4
        assert sum(b"marks" in row["value"] for row in h.topic("headrace.time")) == 10
        replay(h, gear="long")


def test_an_engine_that_was_replaced_writes_no_markers() -> None:
    with harness(CLICKS, partitions=2) as h:
        click(h, "12:00:05", 0)
        turn_all(h)
        zombie = h.engine
        newer = Engine(h.project, h.log, zombie.tools.store, start_spark(), wall=lambda: 0)
        newer.start()
        h.wall("+10 minutes")
        with pytest.raises(EngineFenced, match="has begun"):
            zombie.turn()
        newer.close()


def test_status_tells_which_partitions_are_idle() -> None:
    with harness(CLICKS, partitions=2) as h:
        click(h, "12:00:05", 0)
        turn_all(h)
        h.wall("+5 minutes")
        click(h, "12:05:20", 0)
        turn_all(h)
        with h.engine.tools.store.open() as snapshot:
            status = take_status("test", snapshot, h.log, h.engine.settings)
        [stream] = status.streams
        assert [(each.partition, each.idle) for each in stream.partitions] == [
            (0, False),
            (1, True),
        ]
