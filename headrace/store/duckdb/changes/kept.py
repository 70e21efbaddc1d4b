"""How many changes are kept, and how many wait: the figures of status."""

from collections import Counter
from collections.abc import Callable, Iterable

from headrace.ledger.following import SinkState
from headrace.store.base import KeptChanges
from headrace.store.duckdb.changes.following import read_leases
from headrace.store.duckdb.changes.layout import first_table
from headrace.store.duckdb.changes.shown import Rows, read_shown

__all__ = ["count_kept", "count_waiting"]


def count_waiting(rows: Rows, sinks: Iterable[SinkState]) -> dict[str, int]:
    """Return how many changes wait for each sink, by its topic."""
    waiting: dict[str, int] = {}
    for state in sinks:
        topic = state.sink.topic
        waiting[topic] = 0
        for shown in read_shown(rows, state.sink.view):
            waiting[topic] += _count(rows, f"{shown.changes} WHERE _commit > {state.told}")
        if state.first is not None:
            waiting[topic] += _count(rows, first_table(topic))
    return waiting


def count_kept(
    rows: Rows, sinks: Iterable[SinkState], held: Callable[[str], int]
) -> dict[str, KeptChanges]:
    """Return what is kept of the changes of every view that is followed.

    `held` returns how many bytes of them are in memory.
    """
    kept: dict[str, KeptChanges] = {}
    told = Counter(state.sink.view for state in sinks)
    leases = Counter(view for view, _ in read_leases(rows).values())
    followed = "SELECT view, since, always FROM headrace.followed ORDER BY view"
    for view, since, always in rows(followed, []):
        changes = sum(_count(rows, shown.changes) for shown in read_shown(rows, view))
        kept[view] = KeptChanges(since, changes, told[view], leases[view], always, held(view))
    return kept


def _count(rows: Rows, source: str) -> int:
    return int(rows(f"SELECT count(*) FROM {source}", [])[0][0])
