"""A unit: the streams and views that commit together, and how far they have read."""

import threading
from dataclasses import dataclass, field

from headrace.engine.pace import Pace
from headrace.engine.settings import Settings
from headrace.ledger.entries import MAIN, HoldingState, Owner, Progress, SetAside, StreamPartition
from headrace.model.definitions import Stream
from headrace.model.fingerprint import stream_fingerprint
from headrace.plan.fold import Fold
from headrace.schema.json import JsonDecoder

__all__ = ["VERSION_DIGITS", "Source", "Unit", "short_version"]

VERSION_DIGITS = 8


def short_version(fingerprint: str) -> str:
    """Return the part of a fingerprint that names a version."""
    return fingerprint[:VERSION_DIGITS]


class Source:
    """A stream as a unit reads it. An owner counts its records and publishes its dead."""

    def __init__(self, stream: Stream, *, owned: bool) -> None:
        self.stream = stream
        self.owned = owned
        self.version = short_version(stream_fingerprint(stream))
        self.decoder = JsonDecoder(stream.columns, timestamp_format=stream.timestamp_format)

    @property
    def owner(self) -> Owner:
        """Whose counters these are."""
        return Owner("stream", self.stream.name, self.version)


@dataclass
class Unit:
    """What is in memory of a unit. `lock` is held for the length of a turn."""

    name: str
    settings: Settings
    sources: dict[str, Source] = field(default_factory=dict)
    folds: list[Fold] = field(default_factory=list)
    progress: dict[StreamPartition, Progress] = field(default_factory=dict)
    turn: int = 0
    state: HoldingState = HoldingState.LIVE
    reason: str = ""
    resumes: bool = True  # the first turn looks for one that was planned and not committed
    pace: Pace = field(init=False)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.settings)

    @property
    def shared(self) -> bool:
        """Whether a slow view would hold up others."""
        return self.name == MAIN or len(self.folds) > 1

    def leave(self, aside: SetAside) -> None:
        """Let a view go that was set aside."""
        self.folds = [fold for fold in self.folds if fold.name != aside.view]

    def topics(self) -> dict[str, str]:
        """Return the topic of every stream that the unit reads."""
        return {name: source.stream.topic for name, source in self.sources.items()}

    def folds_over(self, stream: str) -> list[Fold]:
        """Return the folds that read a stream."""
        return [fold for fold in self.folds if fold.stream.name == stream]
