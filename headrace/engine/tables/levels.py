"""When tables were last read to the end of their topics, where these are compacted.

A tombstone stays for a while after compaction met it. A table that was not level for longer may
have missed one, and would keep a row that is gone: so it is built anew. What is noted is in a file
beside the store; without it no table that has something to read is known to have been level.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headrace.engine.unit import Unit
from headrace.ledger.definitions import stream_of
from headrace.ledger.entries import Holding
from headrace.log.base import Log, Partition
from headrace.model.definitions import Stream
from headrace.store.base import Snapshot, Store

__all__ = ["TableLevels"]

logger = logging.getLogger("headrace.engine")

#: Between two writes of the file; tombstones stay much longer.
SAVE_SECONDS = 60.0


class TableLevels:
    """When each version of a table was last level. To be used by several threads."""

    def __init__(self, store: Store, log: Log) -> None:
        self._log = log
        self._path: Path = store.state_folder / "tables.json"
        self._level: dict[str, float] = {}  # by name and version: seconds since 1970
        self._saved = 0.0
        self._writing = threading.Lock()

    def missed(self, snapshot: Snapshot) -> list[Holding]:
        """Return what has to be built anew: tables that may have missed a tombstone."""
        self._level = _read(self._path)
        holdings, now = snapshot.holdings(), _now()
        topics = {topic.name: topic for topic in self._log.topics()}
        stale: set[tuple[str, str]] = set()
        for held in holdings:
            stream = stream_of(held, held.name) if held.kind == "stream" else None
            if stream is None or not stream.primary_key or stream.topic not in topics:
                continue  # of a table that is no longer defined the topic may be gone
            settings = topics[stream.topic].settings
            away = now - self._level.get(_named(held.name, held.version), 0.0)
            kept_for = settings.tombstone_ms / 1000
            if settings.compact and away > kept_for and self._lags(snapshot, held, stream):
                logger.warning(
                    "table %s is built anew: it was not read to its end for longer than %s keeps "
                    "the records that delete rows (%d s)", held.name, stream.topic, kept_for,
                )  # fmt: skip
                stale.add((held.name, held.unit))
        return [
            held for held in holdings if any((each, held.unit) in stale for each in held.inputs)
        ]

    def _lags(self, snapshot: Snapshot, held: Holding, stream: Stream) -> bool:
        ends = {
            place: extent.end_offset for place, extent in self._log.extents(stream.topic).items()
        }
        return any(
            key.stream == held.name
            and place.offset < ends.get(Partition(stream.topic, key.partition), 0)
            for key, place in snapshot.progress(held.unit).items()
        )

    def note(self, unit: Unit) -> None:
        """Note that a unit has read its topics to their end, as they are now."""
        for name, source in unit.streams.items():
            if source.stream.primary_key:
                self._level[_named(name, source.version)] = _now()
        if self._level and _now() - self._saved > SAVE_SECONDS:
            self.save()

    def begin(self, entered: Iterable[Holding]) -> None:
        """Note that versions are built from now on: what deletes a row later is still there."""
        for held in entered:
            if held.kind == "stream" and stream_of(held, held.name).primary_key:
                self._level[_named(held.name, held.version)] = _now()
        self.save()

    def save(self) -> None:
        """Keep what is noted."""
        if not self._level:
            return
        self._saved = _now()
        try:
            with self._writing:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                beside = self._path.with_suffix(".new")
                # A copy: other units' threads note more meanwhile.
                beside.write_text(json.dumps({"version": 1, "level": dict(self._level)}))
                os.replace(beside, self._path)
        except OSError as error:
            logger.warning("%s: when tables were level is not kept: %s", self._path, error)


def _now() -> float:
    return time.time()


def _named(name: str, version: str) -> str:
    return f"{name}@{version}"


def _read(path: Path) -> dict[str, float]:
    """Return what the file says; nothing where there is none, or none that can be read."""
    try:
        found: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    level = found.get("level") if isinstance(found, Mapping) else None
    if not isinstance(level, Mapping) or found.get("version") != 1:
        return {}
    return {str(name): float(at) for name, at in level.items() if isinstance(at, int | float)}
