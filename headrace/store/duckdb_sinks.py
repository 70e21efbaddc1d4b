"""Which sinks there are, and which version of its view each was told of last.

Every function here writes within the caller's transaction.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from headrace.ledger.entries import Emission, Swap, Telling, When
from headrace.store.duckdb_emission import (
    Teller,
    forget_pending,
    has_pending,
    take_rows,
    tell_all,
    tell_swap,
)
from headrace.store.duckdb_file import DuckDBFile

__all__ = ["TELLINGS", "keep_rows", "set_sinks", "tell_swaps"]

logger = logging.getLogger("headrace.store")

TELLINGS = "SELECT sink, view, version, topic, mode FROM headrace.sinks ORDER BY sink"


def set_sinks(file: DuckDBFile, sinks: Sequence[tuple[Telling, Emission | None]]) -> None:
    """Let the ledger's sinks be these.

    A new one is told of every row of its view; one that is known goes on where it was.
    """
    known = {row[0]: Telling(*row) for row in file.rows(TELLINGS)}
    for telling, emission in sinks:
        old = known.pop(telling.sink, None)
        if old is not None and replace(old, version=telling.version) != telling:
            _forget(file, old)
            old = None
        if old is None:
            file.insert("headrace.sinks", [[*vars(replace(telling, version="")).values()]])
        if emission is None:
            continue
        if old is None or old.version != telling.version:
            tell_all(file, emission)
            _note_version(file, emission)
        elif emission.when is When.NOW:
            _tell_pending(file, emission)  # its view was told now and then before
            forget_pending(file, emission.sink)
    for gone in known.values():
        _forget(file, gone)
    _let_go(file)


def keep_rows(file: DuckDBFile, swaps: Sequence[Swap]) -> None:
    """Remember what the sinks of views that are swapped know, before anything changes."""
    for number, swap in enumerate(swaps):
        if swap.before is not None:
            _tell_pending(file, replace(swap.emission, table=swap.before))
            into = f"temp.__swapped{number}"
            take_rows(file, swap.before, final=swap.emission.final, into=into)
        forget_pending(file, swap.emission.sink)


def tell_swaps(file: DuckDBFile, swaps: Sequence[Swap]) -> None:
    """Tell sinks how the rows of new versions differ from what they know."""
    for number, swap in enumerate(swaps):
        if swap.before is None:
            tell_all(file, swap.emission)
        else:
            tell_swap(file, swap.emission, f"temp.__swapped{number}")
            file.run(f"DROP TABLE temp.__swapped{number}")
        _note_version(file, swap.emission)


def _tell_pending(file: DuckDBFile, emission: Emission) -> None:
    if has_pending(file, emission.sink):
        now = replace(emission, when=When.WITH_KEPT, before_us=emission.after_us)
        teller = Teller(file, now, 0)
        teller.look([])
        teller.tell()


def _note_version(file: DuckDBFile, emission: Emission) -> None:
    file.run(
        "UPDATE headrace.sinks SET version = ? WHERE sink = ?",
        [emission.table.version, emission.sink],
    )


def _forget(file: DuckDBFile, telling: Telling) -> None:
    forget_pending(file, telling.sink)
    file.run("DELETE FROM headrace.sinks WHERE sink = ?", [telling.sink])


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
