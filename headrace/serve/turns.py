"""The last turns of a running engine: what each did, when it ended, how fresh it made tables."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from headrace.ledger.entries import TurnReport

__all__ = ["MAX_TURNS", "EndedTurn", "Turns"]

MAX_TURNS = 600


@dataclass(frozen=True)
class EndedTurn:
    """A turn and the wall clock at the end of its commit.

    `fresh_ms` is how old its newest record was then; None: the log stamps no arrivals.
    """

    report: TurnReport
    ended_us: int
    fresh_ms: float | None


def _now_us() -> int:
    return time.time_ns() // 1000


class Turns:
    """The last MAX_TURNS turns. Units note theirs in threads of their own."""

    def __init__(self, now_us: Callable[[], int] = _now_us) -> None:
        self._now_us = now_us
        self._kept: deque[EndedTurn] = deque(maxlen=MAX_TURNS)
        self._mutex = threading.Lock()
        self._heeding: list[Callable[[EndedTurn], None]] = []

    def heed(self, hears: Callable[[EndedTurn], None]) -> None:
        """Let somebody hear of every turn from now on."""
        self._heeding.append(hears)

    def note(self, report: TurnReport) -> None:
        """Keep a turn that has just been published."""
        publish_us = round(report.milliseconds.get("publish", 0.0) * 1000)
        ended_us = self._now_us() - publish_us
        arrival_us = report.newest_arrival_us
        fresh_ms = None if arrival_us is None else max(0.0, (ended_us - arrival_us) / 1000)
        ended = EndedTurn(report, ended_us, fresh_ms)
        with self._mutex:
            self._kept.append(ended)
        for hears in self._heeding:
            hears(ended)

    def last(self, count: int, unit: str | None = None) -> list[EndedTurn]:
        """Return the last turns, of a unit or of all, newest first."""
        with self._mutex:
            kept = [each for each in self._kept if unit is None or each.report.unit == unit]
        return kept[: -count - 1 : -1]
