"""Write all that a turn did, within the caller's transaction."""

import json
from collections.abc import Sequence

import duckdb
import pyarrow as pa

from headrace.errors import MergeFailed, StoreError
from headrace.ledger.entries import Commit, OutboxEntry, Owner, Seed
from headrace.plan.tables import Table
from headrace.store.base import Evaluate
from headrace.store.duckdb.changes.keeping import ChangeKeeping, Making
from headrace.store.duckdb.file import DuckDBFile
from headrace.store.duckdb.tables.evaluating import Evaluating
from headrace.store.duckdb.tables.names import physical
from headrace.store.duckdb.tables.placing import placing_of
from headrace.store.duckdb.tables.sessions import merge_sessions
from headrace.store.duckdb.tables.statements import merge, replace_rows, replaces_rows, trim
from headrace.store.duckdb.tables.truncating import truncate
from headrace.store.duckdb.versions import (
    clock_row,
    set_aside,
    set_manifests,
    set_progress,
    set_watermarks,
)
from headrace.store.duckdb.writing import write_rows
from headrace.time.clocks import NEVER

__all__ = ["SUM_COUNTERS", "blame_for_memory", "count_commit", "write_turn"]

KEPT_TURNS = 1_000  # reports of turns, per unit
TIDY_TURNS = 100
#: Of so many rows on, a delta replaces rows instead of updating them; below, one MERGE costs less.
REPLACE_ROWS = 50_000

SUM_COUNTERS = """
    SELECT kind, name, version, input, counter, CAST(sum(value) AS BIGINT)
    FROM headrace.counters GROUP BY ALL"""


def write_turn(
    file: DuckDBFile,
    commit: Commit,
    number: int,
    keeping: ChangeKeeping,
    evaluate: Evaluate | None = None,
) -> Making:
    """Write a turn's deltas, changes, positions, counters, outbox and seeds.

    `number` is that of the commit. Returns what was made of changes. MergeFailed names the view.
    """
    unit = commit.planned.unit
    for aside in commit.set_aside:
        set_aside(file, unit, aside)
    making = keeping.begin(commit, number)
    evaluating = Evaluating(file, commit.deltas)
    for table, deltas in commit.deltas.items():
        _merge(file, table, deltas)
    for table, truncates in commit.truncates.items():
        file.run(truncate(table, truncates))
    evaluating.write(evaluate)
    for maker in making.makers:
        maker.close()
    set_progress(file, unit, commit.progress)
    set_watermarks(file, commit.watermarks)
    _expire(file, commit)
    keeping.finish(making)
    for written in commit.written:
        write_rows(file, written)
    _add_counters(file, commit)
    for entry in commit.outbox:
        _add_outbox(file, entry)
    _add_seeds(file, commit.seeds)
    set_manifests(file, unit, commit.manifests)
    _note_turn(file, commit)
    return making


def blame_for_memory(commit: Commit, error: StoreError) -> MergeFailed | None:
    """Return which view is at fault when the store ran out of memory; None: the turn has no rows.

    What a transaction changes stays in memory until it ends, so the view with the largest delta
    needs most; the one whose statement failed may need little.
    """
    sizes: dict[str, int] = {}
    rows = [*commit.deltas.items(), *((each.table, each.rows) for each in commit.written)]
    for table, deltas in rows:
        size = sum(delta.nbytes for delta in deltas)
        sizes[table.view] = sizes.get(table.view, 0) + size
    if not sizes:
        return None
    view = max(sizes, key=lambda each: sizes[each])
    return MergeFailed(
        f"view {view}: the store has too little memory to merge its {sizes[view] / 1e6:,.1f} MB of "
        f"turn {commit.planned.turn}, the most of any view: {str(error.__cause__).splitlines()[0]}."
        f" The other views go on. Let it have fewer groups, or set [engine] max_turn_records lower "
        f"and run again: it goes on from where it stopped.",
        view=view,
    )


def count_commit(file: DuckDBFile) -> None:
    """Give what becomes visible with this transaction a number of its own."""
    file.run("UPDATE headrace.engine SET commits = commits + 1")


def _merge(file: DuckDBFile, table: Table, deltas: Sequence[pa.Table]) -> None:
    try:
        if placing_of(table).chains and not table.part:
            if any(delta.num_rows for delta in deltas):
                merge_sessions(file, table, deltas)
            return
        for delta in deltas:
            with file.registered("__delta", delta) as name:
                for statement in _merging(file, table, name):
                    file.run_again(statement)
                if table.keep is not None:
                    file.run_again(trim(table, name))
    except duckdb.DataError as error:
        raise MergeFailed(
            f"view {table.view}: its delta does not merge: {error}", view=table.view
        ) from error


def _merging(file: DuckDBFile, table: Table, delta: str) -> Sequence[str]:
    if replaces_rows(table):
        [(rows,)] = file.rows(f"SELECT count(*) FROM {physical(table.name)}")
        if rows >= REPLACE_ROWS:
            return replace_rows(table, delta)
    return [merge(table, delta)]


def _expire(file: DuckDBFile, commit: Commit) -> None:
    """Delete the rows that retention ends for, after the turn's own were merged.

    No record can come back to them: its watermark is at least W, so it is late for their windows.
    """
    for table in commit.deltas:
        owner = Owner("view", table.view, table.version)
        watermark_us = commit.watermarks.get(owner, NEVER)
        if table.retention_us is None or watermark_us == NEVER:
            continue
        placing, left_us = placing_of(table), watermark_us - table.retention_us
        file.run(f"DELETE FROM {physical(table.name)} WHERE {placing.expired(left_us)}")
        for items in table.children:
            expired = placing.items_expired(table, items, left_us)
            file.run(f"DELETE FROM {physical(items.name)} WHERE {expired}")


def _add_counters(file: DuckDBFile, commit: Commit) -> None:
    file.insert(
        "headrace.counters",
        [
            [*each.owner, each.input, counter, value]
            for each, counters in commit.counters.items()
            for counter, value in counters.items()
        ],
    )
    if commit.planned.turn % TIDY_TURNS == 0:
        sums = file.rows(SUM_COUNTERS)
        file.run("DELETE FROM headrace.counters")
        file.insert("headrace.counters", sums)


def _add_outbox(file: DuckDBFile, entry: OutboxEntry) -> None:
    row = pa.table(
        {
            "topic": [entry.topic],
            "source_topic": [entry.source.partition.topic],
            "source_partition": [entry.source.partition.number],
            "producer_id": [entry.producer_id],
            "offsets": pa.ListArray.from_arrays([0, len(entry.offsets)], entry.offsets),
            "reasons": pa.ListArray.from_arrays([0, len(entry.reasons)], entry.reasons),
        }
    )
    with file.registered("__entry", row) as name:
        file.run(
            f"INSERT INTO headrace.outbox SELECT nextval('headrace.outbox_numbers'), * FROM {name}"
        )


def _add_seeds(file: DuckDBFile, seeds: Sequence[Seed]) -> None:
    file.insert(
        "headrace.seeds",
        [
            [
                *(seed.stream, seed.version, seed.partition, seed.progress.offset),
                *clock_row(seed.progress.clock),
                seed.time_offset,
            ]
            for seed in seeds
        ],
    )


def _note_turn(file: DuckDBFile, commit: Commit) -> None:
    planned, report = commit.planned, commit.report
    count_commit(file)
    file.run(
        "INSERT INTO headrace.turns VALUES (?, ?, ?, now(), ?, ?, ?, ?, ?)",
        [
            planned.unit,
            planned.turn,
            planned.epoch,
            report.gear,
            report.records,
            report.late,
            report.dead,
            json.dumps(dict(report.milliseconds)),
        ],
    )
    if planned.turn % TIDY_TURNS == 0:
        file.run(
            "DELETE FROM headrace.turns WHERE unit = ? AND turn <= ?",
            [planned.unit, planned.turn - KEPT_TURNS],
        )
    file.run(
        "UPDATE headrace.units SET turn = ?, time_offset = ?, void_markers = ?, "
        "planned_epoch = NULL, planned_ranges = NULL WHERE unit = ?",
        [planned.turn, commit.time_offset, commit.void_markers, planned.unit],
    )
