"""Keep a checkpoint of the topic of markers as an engine goes on, every so many of them."""

import logging
from collections.abc import Iterable
from pathlib import Path

from headrace.engine.time.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from headrace.engine.time.timekeeping import Timekeeper
from headrace.engine.turn.outset import passed
from headrace.engine.unit import Unit
from headrace.store.base import Store

__all__ = ["CHECKPOINT_MARKERS", "SavedMarkers"]

logger = logging.getLogger("headrace.time")

# Between two checkpoints: reading so many takes half a second.
CHECKPOINT_MARKERS = 10_000


class SavedMarkers:
    """The checkpoint beside a store."""

    def __init__(self, store: Store, time: Timekeeper) -> None:
        self._store = store
        self._time = time
        self._path: Path = store.state_folder / "markers.json"
        self._saved = 0  # how far the topic was read at the last checkpoint

    def resume(self) -> None:
        """Let the topic of markers be read from where a checkpoint left it, not from its start."""
        found = read_checkpoint(self._path)
        if found is not None and self._time.resume(found):
            self._saved = found.book.end_offset

    def save(self, units: Iterable[Unit]) -> None:
        """Keep a checkpoint, if there are many markers since the last one."""
        book = self._time.book
        if book.end_offset - self._saved < CHECKPOINT_MARKERS:
            return
        # First where everybody stands: they go on meanwhile, and never back.
        floors = passed(units)
        with self._store.open() as snapshot:
            since = min(snapshot.time_offset(unit) for unit in snapshot.units())
        with self._time.lock:
            kept = book.kept(floors, since)
        try:
            write_checkpoint(self._path, Checkpoint(kept, floors, since))
        except OSError as error:
            logger.warning("%s: no checkpoint of the markers: %s", self._path, error)
        self._saved = kept.end_offset
