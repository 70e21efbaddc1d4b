"""Which sinks there are, and which version of its view each is told of.

A sink is known by its topic: what was told is there, whatever the sink is called. Every function
here writes within the caller's transaction.
"""

import logging
from collections.abc import Sequence

from headrace.ledger.entries import SinkEntry, Swap
from headrace.plan.tables import Table
from headrace.store.duckdb.emission.emitter import (
    emit_difference,
    forget_waiting,
    let_open_wait,
    let_wait,
    take_known,
    waits,
)
from headrace.store.duckdb.file import DuckDBFile

__all__ = ["SINKS", "emit_swaps", "keep_known", "set_sinks"]

logger = logging.getLogger("headrace.store")

SINKS = "SELECT sink, view, version, topic, mode, final FROM headrace.sinks ORDER BY sink"


def set_sinks(file: DuckDBFile, sinks: Sequence[tuple[SinkEntry, Table | None]]) -> set[str]:
    """Let the ledger's sinks be these, and return those that rows wait for.

    For a new one all rows of its view wait; one that is known goes on where it was, and where
    rows are told before they close and were not, or the reverse, the open ones wait. Nothing is
    told here: a row that is too large sets its view aside in a turn, and holds up nobody else.
    """
    known = {entry.topic: entry for entry in (SinkEntry(*row) for row in file.rows(SINKS))}
    for entry, table in sinks:
        old = known.pop(entry.topic, None)
        file.run("DELETE FROM headrace.sinks WHERE topic = ?", [entry.topic])
        file.insert("headrace.sinks", [[*vars(entry).values()]])
        if table is None:
            continue
        if old is None or old.version != entry.version:
            forget_waiting(file, entry.topic)
            let_wait(file, table, entry.topic)
        elif old.final != entry.final:
            let_open_wait(file, table, entry.topic, known=entry.final)
    for gone in known.values():
        _forget(file, gone)
    _let_go(file)
    return {entry.sink for entry, _ in sinks if waits(file, entry.topic)}


def keep_known(file: DuckDBFile, swaps: Sequence[Swap]) -> None:
    """Remember what the sinks of views that are swapped know, before anything changes."""
    for number, swap in enumerate(swaps):
        emission = swap.emission
        if swap.before is not None:
            into = f"temp.__known{number}"
            take_known(file, swap.before, emission.topic, into, final=emission.final)
        forget_waiting(file, emission.topic)


def emit_swaps(file: DuckDBFile, swaps: Sequence[Swap]) -> None:
    """Tell sinks how the rows of new versions differ from what they know. MergeFailed."""
    for number, swap in enumerate(swaps):
        known = None if swap.before is None else f"temp.__known{number}"
        emit_difference(file, swap.emission, known)
        file.run(
            "UPDATE headrace.sinks SET version = ? WHERE topic = ?",
            [swap.emission.table.version, swap.emission.topic],
        )


def _forget(file: DuckDBFile, entry: SinkEntry) -> None:
    forget_waiting(file, entry.topic)
    file.run("DELETE FROM headrace.sinks WHERE topic = ?", [entry.topic])


def _let_go(file: DuckDBFile) -> None:
    """Let go of rows on their way to topics that no sink has any more.

    What a sink that is gone could not publish must not hold up the others for ever.
    """
    waiting = "FROM headrace.emissions WHERE topic NOT IN (SELECT topic FROM headrace.sinks)"
    for topic, count in file.rows(
        f"SELECT topic, count(*) {waiting} GROUP BY topic ORDER BY topic"
    ):
        logger.warning(
            "%d rows that waited for the topic %s are let go: no sink tells it any more",
            count,
            topic,
        )
    file.run(f"DELETE {waiting}")
