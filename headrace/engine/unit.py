"""A unit: the streams and views that commit together, and how far they have read."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from headrace.engine.gears.computing import ComputingDecoder
from headrace.engine.spark.shares import leave_a_core
from headrace.engine.turn.pace import Pace
from headrace.ledger.definitions import short_version
from headrace.ledger.entries import (
    MAIN,
    HoldingState,
    Manifest,
    Owner,
    Progress,
    SetAside,
    StreamPartition,
    TurnReport,
)
from headrace.model.definitions import Stream
from headrace.model.fingerprint import stream_fingerprint
from headrace.operators.state import Hasher
from headrace.plan.stages import Fold, Operator, Pipeline, plan_pipeline
from headrace.project.settings import Settings
from headrace.schema.codec import Codec
from headrace.schema.formats import make_codec

__all__ = ["Unit", "UnitStream", "make_decoder"]


def make_decoder(stream: Stream, wanted: frozenset[str], spark: SparkSession | None) -> Codec:
    """Return a decoder of a stream's records; for one thread, in the driver.

    Without Spark no column can be computed.
    """
    if stream.eager:
        assert spark is not None
        return ComputingDecoder(stream, wanted, spark)
    return make_codec(stream.encoding, wanted)


class UnitStream:
    """A stream as a unit reads it. An owner counts its records and publishes its dead."""

    def __init__(self, stream: Stream, *, owned: bool) -> None:
        self.stream = stream
        self.owned = owned
        self.version = short_version(stream_fingerprint(stream))
        self._decoder: tuple[frozenset[str], Codec] | None = None
        self._hasher: Hasher | None = None

    def decoder(self, wanted: frozenset[str], spark: SparkSession) -> Codec:
        """Return the stream's decoder, with what it learnt of its records' shapes."""
        if self._decoder is None or self._decoder[0] != wanted:
            self._decoder = (wanted, make_decoder(self.stream, wanted, spark))
        return self._decoder[1]

    @property
    def hasher(self) -> Hasher:
        """What hashes the stream's unique ids; for the thread that turns the unit."""
        if self._hasher is None:
            self._hasher = Hasher()
        return self._hasher

    @property
    def owner(self) -> Owner:
        """Whose counters these are."""
        return Owner("stream", self.stream.name, self.version)


@dataclass
class Unit:
    """What is in memory of a unit. `lock` is held for the length of a turn."""

    name: str
    settings: Settings
    streams: dict[str, UnitStream] = field(default_factory=dict)
    folds: list[Fold] = field(default_factory=list)
    progress: dict[StreamPartition, Progress] = field(default_factory=dict)
    added: set[StreamPartition] = field(default_factory=set)  # not in the ledger yet
    reaches_end: bool = False  # its last turn was planned up to the end of its topics
    unfit: dict[str, str] = field(default_factory=dict)  # by stream: why its views cannot go on
    manifests: dict[Operator, Manifest] = field(default_factory=dict)
    turn: int = 0
    last: TurnReport | None = None  # the last turn that this engine took, with all its times
    time_offset: int = 0  # how far it has read the topic of markers
    state: HoldingState = HoldingState.LIVE
    reason: str = ""
    failing: bool = False  # its last turn had to search for many records that fail
    apart: set[Fold] = field(default_factory=set)  # on which records failed in their last turn
    resumes: bool = True  # the first turn looks for one that was planned and not committed
    pace: Pace = field(init=False)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _sessions: dict[str, SparkSession] = field(default_factory=dict, repr=False)
    _session_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.settings)

    @property
    def shared(self) -> bool:
        """Whether a slow view would hold up others."""
        return self.name == MAIN or len({fold.name for fold in self.folds}) > 1

    def session(self, spark: SparkSession, name: str) -> SparkSession:
        """Return a Spark session of the unit's own, with its own relation `__input`.

        Kept from turn to turn: a new one costs some 20 ms.
        """
        with self._session_lock:
            if name not in self._sessions:
                session = self._sessions[name] = spark.newSession()
                if self.name != MAIN:
                    leave_a_core(session)
            return self._sessions[name]

    def add(self, folds: Sequence[Fold]) -> None:
        """Take in a view, with the streams that it reads."""
        # New values instead of changed ones: other threads read these.
        self.folds = [*self.folds, *folds]
        for fold in folds:
            if fold.stream.name not in self.streams:
                read = UnitStream(fold.stream, owned=False)
                self.streams = {**self.streams, fold.stream.name: read}

    def leave(self, aside: SetAside) -> None:
        """Let a view go that was set aside."""
        self.folds = [fold for fold in self.folds if fold.name != aside.view]

    def topics(self) -> dict[str, str]:
        """Return the topic of every stream that the unit reads."""
        return {name: source.stream.topic for name, source in self.streams.items()}

    @property
    def pipeline(self) -> Pipeline:
        """What a turn of the unit does, with the streams and views that it has now."""
        streams = [(source.stream, source.version) for source in self.streams.values()]
        owned = [name for name, source in self.streams.items() if source.owned]
        return plan_pipeline(streams, self.folds, owned=owned)
