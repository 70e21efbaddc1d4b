"""Which topics the streams of a view's version read: positions are told by topic."""

import threading

from headrace.errors import DefinitionUnreadable
from headrace.ledger.definitions import stream_of
from headrace.store.base import Snapshot

__all__ = ["TopicNames"]

_MAX_VERSIONS = 1_000


class TopicNames:
    """The topics by stream, of each version of a view. A version's never change: they are kept."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, str]] = {}
        self._mutex = threading.Lock()

    def of(self, snapshot: Snapshot, view: str, version: str) -> dict[str, str]:
        """Return the topic of each stream that a version reads."""
        with self._mutex:
            found = self._known.get((view, version))
        if found is None:
            found = _read(snapshot, view, version)
            with self._mutex:
                if len(self._known) >= _MAX_VERSIONS:
                    self._known.clear()
                self._known[view, version] = found
        return found


def _read(snapshot: Snapshot, view: str, version: str) -> dict[str, str]:
    topics: dict[str, str] = {}
    for held in snapshot.holdings():
        if (held.kind, held.name, held.version) == ("view", view, version):
            for name in held.inputs:
                try:
                    topics[name] = stream_of(held, name).topic
                except DefinitionUnreadable:
                    topics[name] = name  # a later release wrote it; most topics have this name
    return topics
