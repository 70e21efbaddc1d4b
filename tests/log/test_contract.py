"""The embedded log keeps the contract of every log, with whole and with tiny segments."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from headrace.log import EmbeddedLog, Log
from headrace.testing.log_contract import LogContract


class TestEmbeddedLog(LogContract):
    def make_log(self, path: Path) -> Log:
        return EmbeddedLog(path)

    def opener(self, path: Path) -> Callable[[], Log]:
        return partial(EmbeddedLog, path)


class TestEmbeddedLogThatRollsAllTheTime(LogContract):
    def make_log(self, path: Path) -> Log:
        return EmbeddedLog(path, sync=False, segment_bytes=1)

    def opener(self, path: Path) -> Callable[[], Log]:
        return partial(EmbeddedLog, path, sync=False, segment_bytes=1)
