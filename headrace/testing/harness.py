"""Test a pipeline in one process: a real log, a real store, real Spark, and a virtual clock.

    with headrace.testing.harness(sql_text_or_folder) as h:
        h.append("payments", [{"id": "1", "ts": "2026-01-01T12:00:00Z"}], partition=0)
        h.turn()
        h.rows("spend_per_minute")

The Spark session is started once per process and shared. Every fold of a short turn is split in
two, so that merging is always exercised. Crashes are lines of the test: `h.crash("after_stage")`
makes the next turn die there; `h.restart()` opens a new engine on the same log and store.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from headrace import faults
from headrace.engine.engine import Engine
from headrace.engine.spark.session import start_spark
from headrace.errors import UsageError
from headrace.ledger.entries import Counters, HoldingState, Owner, TurnReport
from headrace.ledger.laws import totals_of
from headrace.log import EmbeddedLog, Log, Partition, Range, records
from headrace.model.definitions import Project, Stream
from headrace.observe.audit import Audit, audit, export_of
from headrace.project.folder import read_definitions
from headrace.project.settings import Settings
from headrace.reference.streams import Record, read_stream
from headrace.schema.codec import Encoding
from headrace.schema.formats import decode_record
from headrace.schema.json_text import Dead
from headrace.sinks.outbox import (
    HEADER_OFFSET,
    HEADER_PARTITION,
    HEADER_REASON,
    HEADER_TOPIC,
    HEADER_VERSION,
    ensure_topic,
)
from headrace.sql import parse_project
from headrace.sql.durations import parse_duration
from headrace.store.following import Follower
from headrace.store.opening import open_store

__all__ = ["Harness", "Row", "Value", "harness", "to_json"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]
Value = Mapping[str, object] | str | bytes | None


# Makes the log in a folder; the clock tells the arrival of what is appended.
OpenLog = Callable[[Path, Callable[[], int]], Log]


def _embedded(folder: Path, clock: Callable[[], int]) -> Log:
    return EmbeddedLog(folder, clock=clock, sync=False)


@contextmanager
def harness(
    definitions: str | Path | Project,
    *,
    partitions: int = 4,
    settings: Settings | None = None,
    open_log: OpenLog = _embedded,
) -> Iterator["Harness"]:
    """Open a harness over SQL text, a folder of `.sql` files, or a project. DefinitionError."""
    folder = Path(tempfile.mkdtemp(prefix="headrace-test-"))
    chosen = settings or Settings(split_folds=2)
    made = Harness(definitions, folder, partitions, chosen, open_log)
    try:
        made.restart()
        yield made
    finally:
        faults.disarm()
        made.close()
        shutil.rmtree(folder)


class Harness:
    """A project under test; see the module's docstring."""

    def __init__(
        self,
        definitions: str | Path | Project,
        folder: Path,
        partitions: int,
        settings: Settings,
        open_log: OpenLog,
    ) -> None:
        self.folder = folder
        self.crashed = False
        self._partitions = partitions
        self._settings = settings
        self._arrival_us = self._latest_us = self._waited_us = 0
        self._engine: Engine | None = None
        self._followers: dict[str, Follower] = {}
        self._project = _parse(definitions)
        self.log = open_log(folder / "log", lambda: self._arrival_us)
        self._create_topics()

    @property
    def engine(self) -> Engine:
        """The engine; UsageError after a crash."""
        if self._engine is None:
            raise UsageError("the engine crashed; call restart() first")
        return self._engine

    @property
    def project(self) -> Project:
        """The definitions under test."""
        return self._project

    def append(
        self,
        name: str,
        values: Sequence[Value],
        *,
        partition: int | None = None,
        arrival: datetime | None = None,
        keys: Sequence[bytes | None] | None = None,
    ) -> None:
        """Append records to a stream's topic: dicts as JSON, text and bytes as they are.

        `arrival` defaults to each record's event time; within a partition it never goes back.
        Rows of a table go under their primary keys, unless `keys` are given.
        """
        stream = next((stream for stream in self._project.streams if stream.name == name), None)
        topic = name if stream is None else stream.topic
        for index, value in enumerate(values):
            raw = value if isinstance(value, bytes | None) else to_json(value)
            moment = _event_time(stream, raw) if arrival is None else arrival
            if moment is not None:
                self._arrival_us = (moment - _EPOCH) // timedelta(microseconds=1)
                self._latest_us = max(self._latest_us, self._arrival_us)
            key = _own_key(stream, value) if keys is None else keys[index]
            self.log.append(topic, records([raw], keys=[key]), partition=partition)

    def delete(
        self, table: str, keys: Sequence[Mapping[str, object]], *, partition: int | None = None
    ) -> None:
        """Append records that delete the rows of these primary keys from a table."""
        self.append(
            table,
            [None] * len(keys),
            keys=[to_json(key) for key in keys],
            partition=partition,
        )

    def turn(self, *, max_records: int | None = None, gear: str | None = None) -> list[TurnReport]:
        """Take one turn over all that was appended, or over `max_records` of it."""
        engine = self.engine
        try:
            return engine.turn(
                max_records=max_records or self._settings.max_turn_records, gear=gear
            )
        except faults.Crash:
            self.crashed = True
            self._engine = None
            return []

    def wall(self, wait: str) -> None:
        """Let time pass: `h.wall("+5 minutes")`. The next turn sees which partitions are idle.

        The wall clock is virtual: the largest arrival so far plus what is added here.
        """
        self._waited_us += parse_duration(wait.removeprefix("+"))

    def _wall_us(self) -> int:
        return self._latest_us + self._waited_us

    def close_time(self) -> None:
        """End the input: every window that has rows closes, and is closed to later records."""
        while self.turn():
            pass
        self.engine.end_input()
        while self.turn():
            pass

    def crash(self, point: str) -> None:
        """Make the next pass of a fault point end the engine."""
        faults.arm(point)

    def restart(self, definitions: str | Path | None = None) -> None:
        """Open a new engine on the same log and store, with other definitions if given."""
        faults.disarm()
        self.crashed = False
        if definitions is not None:
            self._project = _parse(definitions)
            self._create_topics()
        self._close_store()
        self._store = open_store(self.folder / "store.duckdb")
        self._engine = Engine(
            self._project,
            self.log,
            self._store,
            start_spark(),
            settings=self._settings,
            wall=self._wall_us,
        )
        self._engine.start()
        self._followers = {
            view: self.follow(view, after=str(each.token)) for view, each in self._followers.items()
        }

    def lose_store(self) -> None:
        """Delete the store, as if its disk were lost; `restart` builds it anew from the log."""
        self._followers = {}
        self._close_store()
        (self.folder / "store.duckdb").unlink()
        (self.folder / "store.duckdb.wal").unlink(missing_ok=True)
        shutil.rmtree(self.folder / "store.duckdb.state", ignore_errors=True)

    def rows(self, view: str, *, meta: bool = False) -> list[Row]:
        """Return a view's rows; with `meta` also `_events` and `_closed`."""
        with self._store.open() as snapshot:
            rows = snapshot.query(f'SELECT * FROM "{view}"', max_rows=None).to_pylist()
        if meta:
            return list(rows)
        return [{k: v for k, v in row.items() if not k.startswith("_")} for row in rows]

    def follow(self, view: str, *, after: str | None = None) -> Follower:
        """Return a reader of a view's changes: from now on, or after a token.

        `h.follow("v").read()` returns the next page; `.rows` are the rows where it began.
        """
        return self.engine.follow(view, after=after)

    def changes(self, view: str) -> list[Row]:
        """Return how a view changed since this was last asked, first of all since it was empty.

        Rows with `_sign` -1 (it leaves), +1 (it comes) and 0 (it is closed), `_key` and `_closed`.
        """
        follower = self._followers.get(view)
        if follower is None:
            follower = self._followers[view] = self.follow(view)
            return [{**row, "_sign": 1} for row in follower.rows.to_pylist()]
        found: list[Row] = []
        while True:
            page = follower.read()
            found += page.rows.drop_columns(["_commit"]).to_pylist()
            if page.reset:
                return [{**row, "_sign": 1} for row in follower.rows.to_pylist()]
            if page.at_head:
                return found

    def errors(self, view: str) -> list[Row]:
        """Return the rows of `<view>.errors`: keys, and why an expression fails on the row."""
        return self.rows(f"{view}.errors", meta=True)

    def late(self, view: str) -> list[Row]:
        """Return the late records of a view, decoded, in the order of their topic."""
        streams = {each.topic: each for each in self._project.streams_of(self._project.view(view))}
        return [
            decode_record(stream.encoding, None, record["value"]).values
            for record in self.side(f"{view}.late")
            if (stream := streams[record["topic"]])
        ]

    def dead(self, name: str) -> list[Row]:
        """Return the dead records of a stream or view: reason, coordinates and raw value."""
        return self.side(f"{name}.dead")

    def duplicates(self, stream: str) -> list[Row]:
        """Return the duplicates of a stream that keeps them: reason, coordinates and raw value."""
        return self.side(f"{stream}.duplicate")

    def side(self, topic: str) -> list[Row]:
        """Return what a side topic holds of the version that readers see.

        Reason, coordinates and raw value of each record; a replay of an edited definition leaves
        the records of the version before it in the topic, under that version's name.
        """
        found = []
        version = self._owner(topic.rpartition(".")[0]).version
        for record in self.topic(topic):
            headers = {entry["name"]: entry["value"].decode() for entry in record["headers"]}
            if headers[HEADER_VERSION] != version:
                continue
            found.append(
                {
                    "reason": headers[HEADER_REASON],
                    "topic": headers[HEADER_TOPIC],
                    "partition": int(headers[HEADER_PARTITION]),
                    "offset": int(headers[HEADER_OFFSET]),
                    "value": record["value"],
                }
            )
        return found

    def topic(self, name: str) -> list[Row]:
        """Return the records of a topic, partition by partition; none if there is no topic."""
        if all(topic.name != name for topic in self.log.topics()):
            return []
        found: list[Row] = []
        for partition, extent in sorted(self.log.extents(name).items()):
            for batch in self.log.read(Range(partition, *extent)):
                found += batch.to_pylist()
        return found

    def counters(self, name: str) -> Counters:
        """Return the counters of a stream or view."""
        with self._store.open() as snapshot:
            return totals_of(snapshot.counters()).get(self._owner(name), {})

    def audit(self) -> Audit:
        """Recompute everything from the log, up to what was read. AuditFailed: what differs."""
        found = audit(self.log, export_of(self._store), start_spark())
        if found.differences:
            found.check()
        return found

    def close(self) -> None:
        """Close log and store."""
        self._close_store()
        self.log.close()

    def _create_topics(self) -> None:
        for stream in self._project.streams:
            ensure_topic(self.log, stream.topic, self._partitions)

    def _owner(self, name: str) -> Owner:
        """Return the version that readers of a stream or view see."""
        with self._store.open() as snapshot:
            versions = [holding for holding in snapshot.holdings() if holding.name == name]
        # A table is a stream of changes and a view: it counts, and puts aside, as the stream.
        versions.sort(key=lambda each: (each.kind, each.state is HoldingState.BUILDING))
        return versions[0].owner

    def _close_store(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        if hasattr(self, "_store"):
            self._store.close()


def _parse(definitions: str | Path | Project) -> Project:
    if isinstance(definitions, Project):
        return definitions
    if isinstance(definitions, Path):
        return read_definitions(definitions)
    return _parse_text(definitions)


@lru_cache(maxsize=32)  # a property test opens the same project again and again
def _parse_text(definitions: str) -> Project:
    return parse_project({"test.sql": definitions})


def to_json(value: Mapping[str, object] | str) -> bytes:
    """Return a record as bytes: text as it is, a mapping as JSON with times in ISO 8601."""
    if isinstance(value, str):
        return value.encode()
    return json.dumps(value, default=_plain).encode()


def _own_key(stream: Stream | None, value: Value) -> bytes | None:
    """Return the primary key of a row of a table, as JSON."""
    if stream is None or not isinstance(value, Mapping):
        return None
    key = {name: value[name] for name in stream.primary_key if name in value}
    return to_json(key) if key else None


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in JSON; pass text, a number or a time")


def _event_time(stream: Stream | None, value: bytes | None) -> datetime | None:
    """Return a record's event time, None when it has none that can be read."""
    if stream is None or stream.event_time is None or value is None:
        return None
    if any(each.name == stream.event_time for each in stream.eager):
        read = read_stream(stream, {Partition(stream.topic, 0): [Record(0, None, None, value)]}, [])
        times = [record.values[stream.event_time] for record in read.readable]
        return times[0] if times and isinstance(times[0], datetime) else None
    columns = tuple(column for column in stream.columns if column.name == stream.event_time)
    try:
        change = decode_record(Encoding("json", columns, stream.timestamp_format), None, value)
    except Dead:
        return None  # a broken record keeps the arrival of the one before it
    found = change.values.get(stream.event_time)
    return found if isinstance(found, datetime) else None
