"""Which sinks there are, and which version of its view each is told of.

A sink is known by its topic: what was told is there, whatever the sink is called. Every function
here writes within the caller's transaction.
"""

import logging
from collections.abc import Sequence

from headrace.ledger.entries import Swap, Telling
from headrace.plan.tables import Table
from headrace.store.duckdb.emission import (
    forget_waiting,
    let_open_wait,
    let_wait,
    take_known,
    tell_difference,
    waits,
)
from headrace.store.duckdb.file import DuckDBFile

__all__ = ["TELLINGS", "keep_known", "set_sinks", "tell_swaps"]

logger = logging.getLogger("headrace.store")

TELLINGS = "SELECT sink, view, version, topic, mode, final FROM headrace.sinks ORDER BY sink"


def set_sinks(file: DuckDBFile, sinks: Sequence[tuple[Telling, Table | None]]) -> set[str]:
    """Let the ledger's sinks be these, and return those that rows wait for.

    For a new one all rows of its view wait; one that is known goes on where it was, and where
    rows are told before they close and were not, or the reverse, the open ones wait. Nothing is
    told here: a row that cannot be read sets its view aside in a turn, and holds up nobody else.
    """
    known = {telling.topic: telling for telling in (Telling(*row) for row in file.rows(TELLINGS))}
    for telling, table in sinks:
        old = known.pop(telling.topic, None)
        file.run("DELETE FROM headrace.sinks WHERE topic = ?", [telling.topic])
        file.insert("headrace.sinks", [[*vars(telling).values()]])
        if table is None:
            continue
        if old is None or old.version != telling.version:
            forget_waiting(file, telling.topic)
            let_wait(file, table, telling.topic)
        elif old.final != telling.final:
            let_open_wait(file, table, telling.topic, known=telling.final)
    for gone in known.values():
        _forget(file, gone)
    _let_go(file)
    return {telling.sink for telling, _ in sinks if waits(file, telling.topic)}


def keep_known(file: DuckDBFile, swaps: Sequence[Swap]) -> None:
    """Remember what the sinks of views that are swapped know, before anything changes."""
    for number, swap in enumerate(swaps):
        emission = swap.emission
        if swap.before is not None:
            into = f"temp.__known{number}"
            take_known(file, swap.before, emission.topic, into, final=emission.final)
        forget_waiting(file, emission.topic)


def tell_swaps(file: DuckDBFile, swaps: Sequence[Swap]) -> None:
    """Tell sinks how the rows of new versions differ from what they know. MergeFailed."""
    for number, swap in enumerate(swaps):
        known = None if swap.before is None else f"temp.__known{number}"
        tell_difference(file, swap.emission, known)
        file.run(
            "UPDATE headrace.sinks SET version = ? WHERE topic = ?",
            [swap.emission.table.version, swap.emission.topic],
        )


def _forget(file: DuckDBFile, telling: Telling) -> None:
    forget_waiting(file, telling.topic)
    file.run("DELETE FROM headrace.sinks WHERE topic = ?", [telling.topic])


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
