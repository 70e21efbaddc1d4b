"""What the parts of the log's contract share: how a log is made, and how it is looked into."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from headrace.log.base import Log, Partition, Range

__all__ = ["CAPABILITIES", "LogSuite", "rows", "values"]

CAPABILITIES = {
    "dense_offsets": "the n-th record of a partition has offset n",
    "producers": "a batch of a producer is stored once, and an older epoch is fenced",
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


class LogSuite(ABC):
    """What the parts of the suite share. A fresh log is made for every test, in its own folder."""

    cannot: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def make_log(self, path: Path) -> Log:
        """Return a log; two made of the same path must be the same log, seen twice."""

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
