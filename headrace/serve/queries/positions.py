"""The positions that tables stand for, as text: `payments/0@120,payments/1@33`.

An offset is the next one to read: all records before it are in the table.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from headrace.ledger.definitions import stream_of
from headrace.ledger.entries import Holding
from headrace.plan.tables import ERRORS
from headrace.store.base import Snapshot

__all__ = ["Position", "of_table", "position_text", "read_positions", "together"]

Position = Mapping[tuple[str, int], int]  # by topic and partition


def read_positions(snapshot: Snapshot, shown: Mapping[str, str]) -> dict[str, Position]:
    """Return the position of every view that readers see, in the versions that are `shown`.

    DefinitionUnreadable.
    """
    units: dict[str, dict[str, dict[int, int]]] = {}
    found: dict[str, Position] = {}
    for held in snapshot.holdings():
        if held.kind != "view" or shown.get(held.name) != held.version:
            continue
        if held.unit not in units:
            units[held.unit] = {}
            for (stream, partition), progress in snapshot.progress(held.unit).items():
                units[held.unit].setdefault(stream, {})[partition] = progress.offset
        found[held.name] = _of(held, units[held.unit])
    return found


def _of(held: Holding, streams: Mapping[str, Mapping[int, int]]) -> Position:
    return {
        (topic, partition): offset
        for stream, topic in _topics(held)
        for partition, offset in streams.get(stream, {}).items()
    }


@lru_cache(maxsize=1024)
def _topics(held: Holding) -> tuple[tuple[str, str], ...]:
    """Return the streams that a view reads, and their topics."""
    return tuple((stream, stream_of(held, stream).topic) for stream in held.inputs)


def of_table(name: str, positions: Mapping[str, Position]) -> Position:
    """Return the position of a relation that readers see: a view, or its errors."""
    return positions.get(name, positions.get(name.removesuffix(f".{ERRORS}"), {}))


def together(positions: Iterable[Position]) -> Position:
    """Return how far all of some positions are."""
    least: dict[tuple[str, int], int] = {}
    for position in positions:
        for place, offset in position.items():
            least[place] = min(offset, least.get(place, offset))
    return least


def position_text(position: Position) -> str:
    """Return a position as text."""
    return ",".join(
        f"{topic}/{partition}@{offset}" for (topic, partition), offset in sorted(position.items())
    )
