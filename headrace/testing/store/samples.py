"""What the suite of the store is written with: small tables, deltas, turns, and its fixtures."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace import faults
from headrace.aggregates.words import Merge
from headrace.ledger.entries import (
    MAIN,
    Commit,
    Counted,
    Holding,
    HoldingState,
    OutboxEntry,
    Owner,
    PlannedTurn,
    Progress,
    StreamPartition,
    StreamRange,
    TurnReport,
)
from headrace.log.base import Partition, Range
from headrace.plan.tables import Output, Table, TableColumn
from headrace.plan.terms import Reference
from headrace.schema.types import parse_type
from headrace.store.base import Store
from headrace.time.clocks import NEVER, Clock
from headrace.time.placement import Forever

__all__ = [
    "MAIN",
    "PARTITION_0",
    "STREAM",
    "StoreSuite",
    "counts",
    "delta",
    "entry",
    "holding",
    "kept_items",
    "outputs_of",
    "planned",
    "read",
    "stream_holding",
    "turn_of",
]

STREAM = Owner("stream", "clicks", "s1")
PARTITION_0 = StreamPartition("clicks", 0)


def counts(view: str = "hits", version: str = "v1", *, keyed: bool = True) -> Table:
    """Return the table of a view that counts, adds up and keeps the extremes, by `k`."""
    keys = (TableColumn("k", parse_type("STRING")),) if keyed else ()
    bigint = parse_type("BIGINT")
    states = (
        TableColumn("_events", bigint, Merge.COUNT),
        TableColumn("total", parse_type("DECIMAL(38,2)"), Merge.ADD),
        TableColumn("least", bigint, Merge.LEAST),
        TableColumn("greatest", bigint, Merge.GREATEST),
    )
    columns = (*keys, *states)
    return Table(view, version, columns, Forever(), outputs=outputs_of(columns))


def outputs_of(columns: Sequence[TableColumn]) -> tuple[Output, ...]:
    """Return outputs that show columns as they are; `_events` is always shown."""
    return tuple(
        Output(column.name, Reference(column.name, column.type), column.type)
        for column in columns
        if column.name != "_events"
    )


def kept_items(table: Table, *, keep: int | None) -> Table:
    """Return a table of items beside another one: its keys, a number, and where it came first."""
    bigint = parse_type("BIGINT")
    columns = (
        *table.keys,
        TableColumn("a0_item", bigint),
        TableColumn("a0_0", bigint, Merge.LEAST),
    )
    return Table(table.view, table.version, columns, table.placement, part="items_a0", keep=keep)


def delta(table: Table, *rows: Sequence[object]) -> pa.Table:
    """Return rows as a delta of a table."""
    schema = pa.schema([(column.name, column.type.arrow) for column in table.columns])
    return pa.Table.from_pylist(
        [dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema
    ).cast(schema)


def holding(table: Table, unit: str = MAIN, **changes: Any) -> Holding:
    """Return the holding of a table's version."""
    form = ("view", "stream")
    held = Holding("view", table.view, table.version, unit, ("clicks",), "f" * 64, form, "view")
    return replace(held, **changes)


def stream_holding(version: str = "s1", unit: str = MAIN, **changes: Any) -> Holding:
    """Return the holding of a version of the stream `clicks`."""
    held = Holding("stream", "clicks", version, unit, ("clicks",), "f" * 64, ("stream",), "text")
    return replace(held, **changes)


def planned(epoch: int, turn: int, *, unit: str = MAIN) -> PlannedTurn:
    """Return a turn that reads ten records, the n-th ten of its partition."""
    range = Range(Partition("topic", 0), (turn - 1) * 10, turn * 10)
    return PlannedTurn(unit, turn, epoch, (StreamRange("clicks", range),))


def turn_of(
    plan: PlannedTurn,
    deltas: Mapping[Table, tuple[pa.Table, ...]] | None = None,
    counters: Mapping[Owner, Mapping[str, int]] | None = None,
    **others: Any,
) -> Commit:
    """Return the commit of a planned turn; it moves the position to the turn's end."""
    end = plan.ranges[0].range.end
    progress = others.pop("progress", {PARTITION_0: Progress(end, Clock(end * 1_000, end * 1_000))})
    watermark_us = min((place.clock.watermark_us for place in progress.values()), default=NEVER)
    report = TurnReport(plan.unit, plan.turn, "short", plan.records, 0, 0, {"fold": 1.5})
    return Commit(
        plan,
        others.pop("time_offset", 0),
        progress,
        deltas or {},
        {Counted(owner, "clicks"): counted for owner, counted in (counters or {}).items()},
        others.pop("outbox", ()),
        report,
        watermarks={
            Owner("view", table.view, table.version): watermark_us for table in deltas or {}
        },
        **others,
    )


def entry(*offsets: int, topic: str = "clicks.dead") -> OutboxEntry:
    """Return an outbox entry of records of the topic's first partition."""
    source = Range(Partition("topic", 0), offsets[0], offsets[-1] + 1)
    reasons = pa.array([f"reason {offset}" for offset in offsets])
    return OutboxEntry(topic, source, f"{topic}@s1", pa.array(offsets, pa.int64()), reasons)


def read(store: Store, table: Table) -> list[tuple[Any, ...]]:
    """Return a table's rows as tuples, in the order of their text."""
    with store.open() as snapshot:
        rows = snapshot.states(table).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=str)


class StoreSuite(ABC):
    """A fresh store is made for every test, in a folder of its own."""

    @abstractmethod
    def make_store(self, path: Path) -> Store:
        """Return the store that is kept at `path`."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """Return where the store of this test is."""
        return tmp_path / "kept" / "store.duckdb"

    @pytest.fixture
    def store(self, path: Path) -> Iterator[Store]:
        """Make the store of this test, and close it afterwards."""
        store = self.make_store(path)
        yield store
        faults.disarm()
        store.close()

    def begin(self, store: Store, *tables: Table) -> int:
        """Hold a stream and views in the main unit, shown, and return the epoch."""
        epoch = store.begin_epoch()
        holdings = [stream_holding(), *(holding(table) for table in tables)]
        store.hold(epoch, holdings, {MAIN: {PARTITION_0: Progress()}})
        for table in tables:
            store.prepare(table)
        store.show(epoch, MAIN, tables)
        return epoch

    def build(
        self,
        store: Store,
        epoch: int,
        table: Table,
        *,
        offset: int = 10,
        rows: pa.Table | None = None,
    ) -> str:
        """Hold a new version in a unit of its own, at an offset, and return the unit."""
        unit = f"view:{table.view}@{table.version}"
        held = holding(table, unit, state=HoldingState.BUILDING)
        store.hold(epoch, [held], {unit: {PARTITION_0: Progress()}})
        store.prepare(table)
        rows = delta(table, ("a", 100, 100, 100, 100)) if rows is None else rows
        progress = {PARTITION_0: Progress(offset, Clock(offset))}
        store.commit(turn_of(planned(epoch, 1, unit=unit), {table: (rows,)}, progress=progress))
        return unit
