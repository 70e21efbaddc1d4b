"""A planner with a real log, a real store and a main unit whose turns are taken by hand.

Records are decoded and stamped, and nothing is folded: no Spark. Times are seconds from 1970 on.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.engine.tables.topic_facts import TopicFacts
from headrace.engine.turn.emitting import NEVER_US
from headrace.engine.turn.outset import Outset
from headrace.engine.turn.planning import Planner
from headrace.engine.unit import Unit, UnitStream, make_decoder
from headrace.errors import Unreachable
from headrace.ledger.entries import MAIN, PlannedTurn, Progress, StreamPartition
from headrace.log import Appended, EmbeddedLog, Range, records
from headrace.log.names import TIME_TOPIC
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore
from headrace.time.clocks import Clock

__all__ = ["ADAPTIVE", "CLICKS", "SECOND_US", "Desk"]

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
            lambda: NEVER_US,
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
            stamper = outset.stamper(source.stream, range, decoder, facts=TopicFacts())
            table = pa.Table.from_batches(self.log.read(range))
            stamper.stamp(table, stamper.accept(table, decoder.decode(table)))
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
