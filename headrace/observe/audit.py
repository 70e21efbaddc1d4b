"""Prove the promise: recompute everything from the log and compare.

For every unit the audit replays its views from the log's start into an empty store, in turns of its
own size, and compares
- clocks, and the counters and their laws;
- the states of every table, key by key (exactly, but for what rounding leaves in sums over DOUBLE);
- the errors of every view, `<view>.errors`, but of those that such a rounding may decide;
- the late, dead and duplicate sets with what their topics hold (and what still waits in the
  outbox): each record once, none missing, none too many;
- of a table whose topic is compacted only the rows that are shown: what is gone cannot be counted;
- the rows of streams that are written with what their topics hold (and what still waits).

An engine that runs is asked for the ledger, and then for one table after the other. Each comes from
a short transaction, with the position that it stands for; the replay reads on to that position
before it is compared. So no transaction is held open, and of the tables one is on disk at a time.

What the log held when the audit began has to have been read, or the audit is not complete: nothing
is proved of records that nobody has read.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pyspark.sql import SparkSession

from headrace.errors import AuditFailed, AuditIncomplete, EngineError, PositionLost, TopicNotFound
from headrace.ledger.entries import (
    Counters,
    HoldingState,
    Owner,
    Progress,
    StreamPartition,
    side_producer,
)
from headrace.ledger.laws import broken_laws, totals_of
from headrace.log.base import Extent, Log, Partition
from headrace.observe.gone import gone_text
from headrace.observe.ledger import (
    check_nothing_went,
    check_records_are_there,
    compacted_tables,
    compare_counters,
    compare_progress,
    compare_watermarks,
)
from headrace.observe.replaying import Position, Replay, replaying
from headrace.observe.sides import read_side_offsets
from headrace.observe.written import is_complete, read_written_rows
from headrace.plan.stages import kept_tables, tables_of
from headrace.plan.tables import Table
from headrace.project.settings import Settings
from headrace.store.base import Snapshot, Store
from headrace.store.opening import Exported, OpenExport, opening_exports

__all__ = ["Audit", "Export", "audit", "export_of"]

#: Writes the export of a store: its ledger, or with the name of a physical table that one's rows.
Export = Callable[[BinaryIO, str | None], None]
OnProgress = Callable[[int, int], None]

_LOOK_AGAIN_SECONDS = 0.2
_SHOWN_ONLY = (
    "table {}: its topic is compacted, so the rows that are shown were compared, and no counters"
)


@dataclass(frozen=True)
class Audit:
    """What an audit looked at and what it found.

    `unread` says what it could not cover: without it and without differences the promise holds.
    """

    records: int
    rows: int
    tables: int
    counters: Mapping[Owner, Counters]
    differences: tuple[str, ...]
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what was compared in another way, and why

    def check(self) -> None:
        """Raise AuditFailed if anything differs, AuditIncomplete if something was not read."""
        if self.differences:
            raise AuditFailed(self.differences)
        if self.unread:
            raise AuditIncomplete(self.unread)

    def to_json(self) -> dict[str, Any]:
        """Return it as the command line and programs are told."""
        return {
            "ok": not self.differences and not self.unread,
            "records": self.records,
            "rows": self.rows,
            "tables": self.tables,
            "counters": [
                {**owner._asdict(), "counters": dict(counters)}
                for owner, counters in sorted(self.counters.items())
            ],
            "differences": list(self.differences),
            "unread": list(self.unread),
            "notes": list(self.notes),
        }


@dataclass
class _Found:
    """What was found so far."""

    records: int = 0
    rows: int = 0
    tables: int = 0
    differences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def export_of(store: Store) -> Export:
    """Return what exports a store of this process."""

    def export(sink: BinaryIO, table: str | None) -> None:
        with store.open() as snapshot:
            snapshot.export(sink, table)

    return export


def audit(
    log: Log,
    export: Export,
    spark: SparkSession,
    *,
    settings: Settings | None = None,
    wait_seconds: float = 0.0,
    on_progress: OnProgress = lambda _done, _all: None,
) -> Audit:
    """Recompute all units from the log. `on_progress` is told the offsets read so far, and all.

    Where an engine runs it gets `wait_seconds` to read what the log holds now. PositionLost:
    records that were read are no longer in the log. EngineError: the views changed meanwhile.
    """
    with (
        tempfile.TemporaryDirectory(prefix="headrace-audit-") as name,
        opening_exports(folder := Path(name)) as open_export,
    ):
        chosen = settings or Settings()
        auditor = _Auditor(log, export, folder, open_export, spark, chosen, on_progress)
        return auditor.audit(wait_seconds)


@dataclass
class _Auditor:
    log: Log
    export: Export
    folder: Path
    open_export: OpenExport
    spark: SparkSession
    settings: Settings
    on_progress: OnProgress

    def audit(self, wait_seconds: float) -> Audit:
        found = _Found()
        with self._waited(wait_seconds) as (unread, ledger):
            counted = ledger.snapshot.counters()
            for each, counters in counted.items():
                found.differences += broken_laws(each.owner, counters)
            totals = totals_of(counted)
            units = _positions(ledger.snapshot)
            for unit in units:
                check_records_are_there(unit, self.log, totals)
            done, whole = 0, sum(unit.span for unit in units)
            for unit in units:
                base = done

                def report(offsets: int, base: int = base) -> None:
                    self.on_progress(min(base + offsets, whole), whole)

                with replaying(unit, self.log, self.spark, self.settings) as replay:
                    replay.read_to(unit, report)
                    self._compare_ledger(ledger, unit, replay, totals, found)
                    self._compare_tables(unit, replay, report, found)
                    found.records += replay.records
                done += unit.span
        if not units:
            unread = ("nothing is committed yet: the store holds no stream and no view",)
        elif not whole and not unread:
            topics = sorted({topic for unit in units for topic in unit.topics().values()})
            unread = (f"the log holds no records of {', '.join(topics)} yet, so nothing is proved",)
        return Audit(
            found.records,
            found.rows,
            found.tables,
            totals,
            tuple(found.differences),
            unread,
            tuple(found.notes),
        )

    @contextmanager
    def _waited(self, seconds: float) -> Iterator[tuple[tuple[str, ...], Exported]]:
        """Wait until all is read that the log holds now; give what is not, and the ledger."""
        deadline = time.monotonic() + seconds
        ends: dict[Partition, int] = {}
        while True:
            with self._exported(None) as ledger:
                units = _positions(ledger.snapshot)
                for topic in {topic for unit in units for topic in unit.topics().values()}:
                    if all(partition.topic != topic for partition in ends):
                        extents = self._extents(topic, units).items()
                        ends |= {place: extent.end_offset for place, extent in extents}
                behind = tuple(text for unit in units for text in _unread(unit, ends))
                if not behind or time.monotonic() >= deadline:
                    yield behind, ledger
                    return
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _extents(self, topic: str, units: Sequence[Position]) -> Mapping[Partition, Extent]:
        try:
            return self.log.extents(topic)
        except TopicNotFound as error:
            read = {place: offset for unit in units for (_, place), offset in unit.ends().items()}
            records = sum(offset for place, offset in read.items() if place.topic == topic)
            raise PositionLost(gone_text(topic, records)) from error

    @contextmanager
    def _exported(self, table: str | None) -> Iterator[Exported]:
        path = self.folder / f"{table or 'ledger'}.export"
        with path.open("wb") as sink:
            self.export(sink, table)
        try:
            with self.open_export(path) as exported:
                yield exported
        finally:
            path.unlink()

    def _compare_ledger(
        self,
        ledger: Exported,
        unit: Position,
        replay: Replay,
        totals: Mapping[Owner, Counters],
        found: _Found,
    ) -> None:
        with replay.open() as replayed:
            again, watermarks = totals_of(replayed.counters()), replayed.watermarks()
        check_nothing_went(unit, self.log, totals, again)
        shown_only = compacted_tables(unit, self.log)
        found.notes += [_SHOWN_ONLY.format(name) for name in sorted(shown_only)]
        found.differences += compare_progress(unit, replay.unit.progress, shown_only)
        found.differences += compare_counters(unit, totals, again, shown_only)
        found.differences += compare_watermarks(
            unit, ledger.snapshot.watermarks(), watermarks, shown_only
        )
        with replay.exported() as path, ledger.comparing_with(path):
            for table in tables_of(replay.unit.folds):
                if table.target is not None:
                    self._compare_written(ledger, unit, table, found)
            self._compare_sides(ledger, unit, found, shown_only)

    def _compare_written(
        self, ledger: Exported, unit: Position, table: Table, found: _Found
    ) -> None:
        assert table.target is not None
        topic = table.target.topic
        compared = ledger.compare_written(
            table, _ends(unit), read_written_rows(self.log, topic),
            complete=is_complete(self.log, topic),
        )  # fmt: skip
        found.rows += compared.rows
        found.differences += compared.differences

    def _compare_sides(
        self, ledger: Exported, unit: Position, found: _Found, shown_only: frozenset[str]
    ) -> None:
        topics = unit.topics()
        for holding in unit.holdings:
            if holding.name in shown_only:
                continue
            sources = {topics[name] for name in holding.inputs}
            kinds = ("dead", "duplicate") if holding.kind == "stream" else ("dead", "late")
            for topic in (f"{holding.name}.{kind}" for kind in kinds):
                for stream in holding.inputs:
                    source = topics[stream]
                    ends = {
                        key.partition: place.offset
                        for key, place in unit.progress.items()
                        if key.stream == stream
                    }
                    compared = ledger.compare_sides(
                        f"topic {topic}, of {source}",
                        side_producer(topic, holding.version, source, sources),
                        source,
                        ends,
                        read_side_offsets(self.log, topic, holding.version, source),
                    )
                    found.differences += compared.differences

    def _compare_tables(
        self, unit: Position, replay: Replay, report: Callable[[int], None], found: _Found
    ) -> None:
        tables = kept_tables(replay.unit.folds)
        shown_only = compacted_tables(unit, self.log)
        for table in [each for main in tables for each in (main, *main.children)]:
            with self._exported(table.name) as recorded:
                position = _same_unit(unit, recorded.snapshot)
                replay.read_to(position, report)
                found.differences += compare_progress(position, replay.unit.progress, shown_only)
                with replay.exported(table.name) as path:
                    compare = recorded.compare_rows
                    if table.view in shown_only:
                        compare = recorded.compare_shown
                    compared = compare(table, path)
                    errors = recorded.compare_errors(table, path)
            found.tables += 1
            found.rows += compared.rows
            found.differences += [*compared.differences, *errors.differences]


def _positions(snapshot: Snapshot) -> list[Position]:
    holdings = snapshot.holdings()
    units = []
    for name in snapshot.units():
        held = [holding for holding in holdings if holding.unit == name]
        if held:
            progress, time_offset = snapshot.progress(name), snapshot.time_offset(name)
            units.append(Position(name, held, progress, time_offset))
    return units


def _same_unit(unit: Position, snapshot: Snapshot) -> Position:
    """Return where a unit stands in a later export. EngineError: it holds other versions now."""
    for other in _positions(snapshot):
        if other.unit == unit.unit:
            versions = [{each.owner for each in held} for held in (unit.holdings, other.holdings)]
            if versions[0] == versions[1]:
                return other
    raise EngineError(
        f"unit {unit.unit}: its views changed while they were audited; one was swapped in or set "
        f"aside. Audit again."
    )


def _unread(unit: Position, ends: Mapping[Partition, int]) -> Iterator[str]:
    """Yield what of the log a unit has not read, by stream."""
    topics = unit.topics()
    for stream in sorted({key.stream for key in unit.progress} | set(topics)):
        behind = {
            partition.number: end - place.offset
            for partition, end in ends.items()
            if partition.topic == topics[stream]
            and (place := unit.progress.get(StreamPartition(stream, partition.number), Progress()))
            and place.offset < end
        }
        if behind:
            count = sum(behind.values())
            noun, them = ("record", "it") if count == 1 else ("records", "them")
            where = ", ".join(f"{number}: {left:,}" for number, left in sorted(behind.items()))
            yield (
                f"unit {unit.unit}: {count:,} {noun} of {topics[stream]} "
                f"{'is' if count == 1 else 'are'} not read yet ({where} by partition), so nothing "
                f"is said of {them}. {_why_unread(unit, them)}"
            )


def _why_unread(unit: Position, them: str) -> str:
    standing = [held for held in unit.holdings if held.state.stands_still]
    if not standing:
        return f"Let `headrace run` read {them}, and audit again."
    return " ".join(
        f"View {held.name} is paused; `headrace resume {held.name}` lets it go on."
        if held.state is HoldingState.PAUSED
        else f"View {held.name} failed: {held.reason}"
        for held in standing
    )


def _ends(unit: Position) -> dict[Partition, int]:
    """Return how far all streams of a unit have read each partition."""
    topics = unit.topics()
    found: dict[Partition, int] = {}
    for key, place in unit.progress.items():
        partition = Partition(topics[key.stream], key.partition)
        found[partition] = min(place.offset, found.get(partition, place.offset))
    return found
