"""Replay a unit from the log's start to one position after another, in a store of its own.

Promise: at a position the replay has read every record and every marker before it, and no other.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from headrace.engine.engine import Engine
from headrace.engine.unit import Unit
from headrace.ledger.definitions import stream_of, view_of
from headrace.ledger.entries import MAIN, Holding, Progress, StreamPartition
from headrace.log.base import Log, Partition
from headrace.log.names import TIME_TOPIC
from headrace.model.definitions import Project
from headrace.project.settings import Settings
from headrace.store.base import Snapshot, Store
from headrace.store.opening import open_store

__all__ = ["Position", "Replay", "replaying"]


@dataclass(frozen=True)
class Position:
    """What the ledger says of one unit: what it holds and how far it has read."""

    unit: str
    holdings: Sequence[Holding]
    progress: Mapping[StreamPartition, Progress]
    time_offset: int

    @property
    def span(self) -> int:
        """How many offsets its streams have read."""
        return sum(place.offset for place in self.progress.values())

    def topics(self) -> dict[str, str]:
        """Return the topic of every stream that the unit reads."""
        return {name: stream_of(held, name).topic for held in self.holdings for name in held.inputs}

    def ends(self) -> dict[tuple[str, Partition], int]:
        """Return the offsets that the unit has read to, of the topic of markers too."""
        topics = self.topics()
        ends = {
            (key.stream, Partition(topics[key.stream], key.partition)): place.offset
            for key, place in self.progress.items()
        }
        return ends | {(TIME_TOPIC, Partition(TIME_TOPIC, 0)): self.time_offset}


class Replay:
    """A unit's definitions, replayed so far. `records` counts what was read."""

    def __init__(self, engine: Engine, store: Store, folder: Path) -> None:
        self.records = 0
        self._engine = engine
        self._store = store
        self._folder = folder

    @property
    def unit(self) -> Unit:
        """The unit that replays."""
        return self._engine.units[MAIN]

    def read_to(self, position: Position, report: Callable[[int], None]) -> None:
        """Read on to a position; `report` is told how many offsets were read."""
        self._engine.planner.read_until(position.ends())
        while reports := self._engine.turn():
            self.records += sum(each.records for each in reports)
            report(sum(place.offset for place in self.unit.progress.values()))

    @contextmanager
    def open(self) -> Iterator[Snapshot]:
        """Open what was replayed so far."""
        with self._store.open() as snapshot:
            yield snapshot

    @contextmanager
    def exported(self, table: str | None = None) -> Iterator[Path]:
        """Export what was replayed so far to a file, which is removed at the end."""
        path = self._folder / "replayed.export"
        with self.open() as snapshot, path.open("wb") as sink:
            snapshot.export(sink, table)
        try:
            yield path
        finally:
            path.unlink()


@contextmanager
def replaying(
    position: Position, log: Log, spark: SparkSession, settings: Settings
) -> Iterator[Replay]:
    """Open a replay of a unit's definitions, at the log's start; it writes nothing to the log."""
    streams = {name: stream_of(held, name) for held in position.holdings for name in held.inputs}
    views = [view_of(holding) for holding in position.holdings if holding.kind == "view"]
    with tempfile.TemporaryDirectory(prefix="headrace-audit-") as folder:
        store = open_store(Path(folder) / "store.duckdb")
        # No view shares its turns with live ones here, so there is nobody to hold up.
        alone = replace(settings, probe_jobs=settings.max_turn_records)
        project = Project(tuple(streams.values()), tuple(views))
        engine = Engine(
            project,
            log,
            store,
            spark,
            settings=alone,
            publishes=False,
            ends=position.ends(),
            evaluated={each.name: each.evaluated for each in position.holdings},
        )
        try:
            engine.start()
            yield Replay(engine, store, Path(folder))
        finally:
            engine.close()
            store.close()
