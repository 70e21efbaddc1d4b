"""What the parts of the log's contract share: how a log is made, and how it is looked into."""

import os
import pickle
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from headrace.log.base import Log, Partition, Range
from headrace.log.murmur2 import partition_of

__all__ = [
    "CAPABILITIES",
    "FILLER_KEY",
    "LogSuite",
    "rows",
    "start_process",
    "values",
]

#: The key of what `compact` may append; no test uses it otherwise.
FILLER_KEY = b"headrace-filler"

CAPABILITIES = {
    "compaction": "a compacted topic keeps the newest record of each key",
    "dense_offsets": "the n-th record of a partition has offset n",
    "null_headers": "null headers and an empty list of headers are told apart",
    "processes": "other processes use the same log, and are killed",
    "producers": "a batch of a producer is stored once, and an older epoch is fenced",
    "queue_settings": "other settings are refused while a queue has consumers",
    "splits": "a split can be read in another process",
}


def rows(log: Log, partition: Partition, start: int = 0, end: int | None = None) -> list[Any]:
    """Return the records of a partition as dictionaries, all of them unless told otherwise."""
    first, last = log.extents(partition.topic)[partition]
    whole = Range(partition, max(start, first), last if end is None else end)
    return [row for batch in log.read(whole) for row in batch.to_pylist()]


def values(log: Log, partition: Partition) -> list[bytes | None]:
    """Return the values of a partition, in order."""
    return [row["value"] for row in rows(log, partition)]


def start_process(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Run Python code in another process that can be spoken with, a line at a time."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


class LogSuite(ABC):
    """What the parts of the suite share. A fresh log is made for every test, in its own folder."""

    cannot: ClassVar[Mapping[str, str]] = {}
    longest_name: ClassVar[int] = 249
    # An implementation sets these to what it is capable of; they decide how long the tests take.
    #: The shortest session of a group's member.
    session_timeout_ms: ClassVar[int] = 6_000
    #: How long a queue's consumer has for a record, where the test waits for the end of it.
    lock_ms: ClassVar[int] = 5_000
    #: How long to wait for what happens soon: a rebalance, a first delivery.
    patience_s: ClassVar[float] = 60.0
    #: The fault points that a group's commit passes.
    commit_faults: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def make_log(self, path: Path) -> Log:
        """Return a log; two made of the same path must be the same log, seen twice."""

    @abstractmethod
    def opener(self, path: Path, name: str = "the one that dies") -> Callable[[], Log]:
        """Return what opens the same log in another process; it pickles.

        A process that opens it so may be killed, and is followed by one that opens it so. Those
        that live at the same time have names of their own.
        """

    def settle(self) -> None:
        """Wait until every log sees what another one changed about topics; here, not at all."""
        return

    def kafka_picks(self, keys: Sequence[bytes], partitions: int) -> list[int]:
        """Return the partition that Kafka's own client picks for each key.

        Here it is worked out by the rule that our logs use, so it says only that they do.
        """
        return [int(number) for number in partition_of(pa.array(keys, pa.binary()), partitions)]

    def make_log_code(self, path: Path, name: str = "the one that dies") -> str:
        """Return Python that binds `log` to the same log in another process."""
        opener = pickle.dumps(self.opener(path, name))
        return f"import pickle; log = pickle.loads({opener!r})()"

    def compact(self, path: Path, topic: str) -> None:
        """Make the log of this path compact all that a topic holds, and return when it has.

        A log that never compacts its newest records may append others, with the key FILLER_KEY.
        """
        raise NotImplementedError("say how this log is made to compact, or that it cannot")

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """Return where the log of this test is."""
        return tmp_path / "log"

    @pytest.fixture
    def log(self, path: Path) -> Iterator[Log]:
        """Make the log of this test, and close it afterwards."""
        log = self.make_log(path)
        yield log
        log.close()

    def need(self, capability: str) -> None:
        """Skip the test, with the declared reason, if the log cannot do this."""
        unknown = set(self.cannot) - set(CAPABILITIES)
        assert not unknown, f"cannot: no capability {unknown}; there are: {', '.join(CAPABILITIES)}"
        if capability in self.cannot:
            pytest.skip(f"{CAPABILITIES[capability]}: {self.cannot[capability]}")
