"""The embedded log keeps the contract of every log, with whole and with tiny segments."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from headrace.log import EmbeddedLog, Log
from headrace.testing.log.contract import LogContract


class TestEmbeddedLog(LogContract):
    session_timeout_ms = 1_000
    lock_ms = 500
    patience_s = 20.0
    # Those that are left out are in test_groups.py.
    commit_faults = (
        "group_before_append",
        "log_before_decision",
        "log_in_acknowledgement",
        "group_after_append",
    )

    def make_log(self, path: Path) -> Log:
        return EmbeddedLog(path)

    def opener(self, path: Path, name: str = "") -> Callable[[], Log]:
        return partial(EmbeddedLog, path)

    def compact(self, path: Path, topic: str) -> None:
        EmbeddedLog(path).compact(topic)


class TestEmbeddedLogThatRollsAllTheTime(LogContract):
    """It compacts with nearly every append, too."""

    cannot: ClassVar = {"processes": "the same log with whole segments is tested with them"}
    session_timeout_ms = 500
    lock_ms = 300
    patience_s = 20.0

    def make_log(self, path: Path) -> Log:
        return EmbeddedLog(path, sync=False, segment_bytes=1)

    def opener(self, path: Path, name: str = "") -> Callable[[], Log]:
        return partial(EmbeddedLog, path, sync=False, segment_bytes=1)

    def compact(self, path: Path, topic: str) -> None:
        EmbeddedLog(path, sync=False, segment_bytes=1).compact(topic)
