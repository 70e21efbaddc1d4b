"""What a planner decides, without Spark: where positions hold, and when markers are written.

Method: a real log, a real store, and a unit whose turns are taken by hand: records are decoded and
stamped, and nothing is folded. Times are seconds from 1970 on.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.engine.turn.outset import Outset
from headrace.engine.turn.planning import Planner
from headrace.engine.unit import Unit, UnitStream, make_decoder
from headrace.errors import PositionLost, Unreachable
from headrace.ledger.entries import MAIN, PlannedTurn, Progress, StreamPartition
from headrace.log import Appended, EmbeddedLog, Range, TopicSettings, records
from headrace.log.names import TIME_TOPIC
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore
from headrace.time.clocks import Clock

SECOND_US = 1_000_000
CLICKS = """
CREATE STREAM clicks (ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS)
WITH (topic = 'clicks', idle_timeout = '1 minute');
"""
ADAPTIVE = CLICKS.replace("ts - INTERVAL 10 SECONDS", "ADAPTIVE (0.9, MAX INTERVAL 1 MINUTE)")


class Desk:
    """A planner, its log, its store, and a main unit over the stream `clicks`."""

    def __init__(self, folder: Path, definitions: str = CLICKS, *, partitions: int = 1) -> None:
        self.folder = folder
        self.now_s = 0
        self.log = EmbeddedLog(folder / "log", sync=False)
        self.log.create_topic("clicks", partitions=partitions)
        self.definitions = definitions
        self.start()

    def start(self, *, at: dict[int, Progress] | None = None) -> None:
        """Begin a new engine's planner, with the main unit at these places or at the start."""
        self.store = DuckDBStore(self.folder / "store.duckdb")
        [stream] = parse_project({"test.sql": self.definitions}).streams
        self.main = Unit(MAIN, Settings(), streams={"clicks": UnitStream(stream, owned=True)})
        begin = Progress(clock=Clock(delay_us=stream.delay_us))
        for place in self.log.extents("clicks"):
            key = StreamPartition("clicks", place.number)
            self.main.progress[key] = (at or {}).get(place.number, begin)
        self.planner = Planner(
            self.log,
            self.store,
            Settings(),
            lambda: {MAIN: self.main},
            lambda _: False,
            wall=lambda: self.now_s * SECOND_US,
        )
        self.planner.begin(writes=True)
        self.planner.begin_unit(self.main)

    def close(self) -> None:
        self.store.close()
        self.log.close()

    def send(self, *seconds: int | None, partition: int = 0) -> None:
        """Append one record for each second; None is one that cannot be read."""
        values = [
            "{" if second is None else json.dumps({"ts": f"{datetime.fromtimestamp(second, UTC)}"})
            for second in seconds
        ]
        self.log.append("clicks", records(values), partition=partition)

    def turn(self, max_records: int | None = None) -> PlannedTurn | None:
        """Plan a turn of the main unit and take it."""
        decided = self.planner.decide(self.main, max_records)
        if decided is None:
            return None
        planned, outset = decided
        self.take(planned, outset)
        return planned

    def take(self, planned: PlannedTurn, outset: Outset) -> None:
        source = self.main.streams["clicks"]
        progress, summaries = dict(outset.progress), []
        for _, range in planned.ranges:
            decoder = make_decoder(source.stream, frozenset({"ts"}), None)
            stamper = outset.stamper(source.stream, range, decoder)
            table = pa.Table.from_batches(self.log.read(range))
            stamper.stamp(table, stamper.accept(table, decoder.decode(table["value"])))
            summaries.append(stamper.summary())
            key = StreamPartition("clicks", range.partition.number)
            progress[key] = Progress(range.end, summaries[-1].end)
        self.main.progress, self.main.time_offset = progress, outset.time_offset
        self.main.turn = planned.turn
        self.main.added.clear()
        self.planner.marking.note(self.main, summaries)

    @contextmanager
    def without_markers(self) -> Iterator[None]:
        """Let the log be out of reach whenever a marker is to be written."""
        with pytest.MonkeyPatch.context() as patch:
            append = self.log.append

            def refuse(topic: str, *arguments: Any, **options: Any) -> Appended:
                if topic == TIME_TOPIC:
                    raise Unreachable("the broker is away")
                return append(topic, *arguments, **options)

            patch.setattr(self.log, "append", refuse)
            yield

    def markers(self) -> list[dict[str, Any]]:
        """Return the markers that were written since the log began, but for epochs."""
        [(place, extent)] = self.log.extents("headrace.time").items()
        values = [v for each in self.log.read(Range(place, *extent)) for v in each["value"]]
        found = [json.loads(value.as_py()) for value in values]
        return [marker for marker in found if "marks" in marker]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def test_a_topic_that_was_made_anew_is_not_read_from_the_middle(desk: Desk) -> None:
    desk.send(*range(20))
    desk.turn()
    desk.log.delete_topic("clicks")
    desk.log.create_topic("clicks", partitions=1)
    lost = r"clicks/0@20: the topic was made anew: it begins at 0 and ends at 5\."
    desk.send(*range(5))
    with pytest.raises(PositionLost, match=lost):
        desk.turn()
    # Also when nothing but the start looks, and when the unit may read no further than here.
    position = desk.main.progress[StreamPartition("clicks", 0)]
    desk.store.close()
    with pytest.raises(PositionLost, match=lost):
        desk.start(at={0: position})
    desk.planner.stop_at_the_end()
    with pytest.raises(PositionLost, match=lost):
        desk.turn()


def test_a_turn_is_not_resumed_past_the_end_of_the_log(desk: Desk) -> None:
    desk.send(*range(20))
    decided = desk.planner.decide(desk.main, None)
    assert decided is not None
    desk.store.hold(desk.planner.epoch, [], {MAIN: desk.main.progress})
    desk.store.journal(decided[0])
    desk.log.delete_topic("clicks")
    desk.log.create_topic("clicks", partitions=1)
    desk.send(*range(5))
    desk.store.close()
    with pytest.raises(PositionLost, match=r"clicks/0@20: the topic was made anew: .* ends at 5\."):
        desk.start()


def test_a_partition_that_is_gone_and_records_that_are_gone_are_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, partitions=2)
    desk.send(1, 2)
    desk.turn()
    desk.log.delete_topic("clicks")
    desk.log.create_topic("clicks", partitions=1)
    desk.send(1, 2)
    with pytest.raises(PositionLost, match=r"clicks/1@0: .* the topic has 1 partition now"):
        desk.turn()
    desk.store.close()
    desk.start()
    desk.turn()
    desk.send(3)
    desk.log.change_topic("clicks", settings=TopicSettings(retention_ms=1))
    later = EmbeddedLog(tmp_path / "log", clock=lambda: 1 << 60)
    later.maintain()
    later.close()
    with pytest.raises(PositionLost, match=r"clicks/0@2: the next record to read is gone"):
        desk.turn()
    desk.close()


def test_an_added_partition_gets_its_marker_though_the_first_attempt_fails(desk: Desk) -> None:
    desk.send(5, 100)
    desk.turn()
    desk.log.change_topic("clicks", partitions=2)
    with desk.without_markers(), pytest.raises(Unreachable):
        desk.turn()
    desk.turn()
    [marker] = desk.markers()
    assert (marker["why"], marker["marks"]) == ("new", [[1, 0, 100 * SECOND_US]])


def test_an_added_partition_is_entered_by_a_turn_that_reads_nothing(desk: Desk) -> None:
    desk.log.change_topic("clicks", partitions=2)
    planned = desk.turn()
    assert planned is not None
    assert planned.ranges == ()
    assert desk.turn() is None
    assert desk.markers() == []  # nobody has a clock that it could begin with


def test_a_rebuild_learns_nothing_for_records_that_were_judged_before(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ADAPTIVE)
    for half in (range(60), range(60, 120)):  # too few for an engine to learn from
        desk.send(*half)
        while desk.turn():
            pass
        position = desk.main.progress[StreamPartition("clicks", 0)]
        desk.store.close()
        desk.start(at={0: position})
    assert desk.markers() == []
    desk.store.close()
    (tmp_path / "store.duckdb").unlink()
    desk.start()
    desk.send(120, 121)
    while desk.turn(max_records=30):
        desk.now_s += 1
    # It has seen enough before it is where the last one was, and what it learnt acts behind that.
    [marker] = desk.markers()
    assert (marker["why"], marker["marks"]) == ("learnt", [[0, 120, None]])
    desk.close()


def test_a_steady_flow_of_broken_records_keeps_no_partition_awake(tmp_path: Path) -> None:
    desk = Desk(tmp_path, partitions=2)
    desk.send(0)
    for second in range(20, 120, 20):  # whenever somebody looks, there is one more to read
        desk.now_s = second
        desk.send(second)
        desk.send(None, partition=1)
        desk.turn()
    # At 100 all is read that came until 80, and the clock of the other one stands there.
    [marker] = desk.markers()
    assert (marker["why"], marker["marks"]) == ("idle", [[1, 4, 80 * SECOND_US]])
    desk.close()


def test_a_log_out_of_reach_does_not_stand_still(desk: Desk) -> None:
    desk.send(5)
    desk.turn()
    desk.now_s += 300
    desk.planner.marking.forget()  # nobody saw what came meanwhile
    assert desk.turn() is None
    desk.now_s += 60
    desk.turn()
    [marker] = desk.markers()
    assert marker["marks"] == [[0, 1, 65 * SECOND_US]]


def test_a_delay_that_could_not_be_written_is_written_at_once_when_it_can(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ADAPTIVE)
    desk.send(*range(120))
    desk.turn()
    with desk.without_markers(), pytest.raises(Unreachable):
        desk.turn()
    desk.turn()
    assert [marker["why"] for marker in desk.markers()] == ["learnt"]
    desk.close()


def test_no_partition_stands_still_that_is_not_read_to_its_end(desk: Desk) -> None:
    desk.send(5)
    desk.turn()
    desk.planner.stop_at_the_end()
    desk.send(30, 100)  # in time, and nobody reads them now
    desk.now_s += 600
    assert desk.turn() is None
    assert desk.markers() == []
