"""What the polls of members and of queue consumers have in common: fair shares, patient waiting."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.errors import UsageError
from headrace.log.base import Range

__all__ = ["check_poll", "share_evenly", "wait_for"]

# How long a poll without records sleeps before it looks again. A look at 4 partitions takes 0.2 ms
# (2 cores), so that waiting costs 1 % of a core.
MIN_PAUSE_S = 0.001
MAX_PAUSE_S = 0.02

T = TypeVar("T")


def check_poll(reader: object, timeout_s: float, max_records: int) -> None:
    """Refuse what no poll can do. UsageError."""
    if timeout_s < 0 or max_records < 1:
        raise UsageError(
            f"{reader}: cannot poll {max_records} records for {timeout_s} s; ask for at least one, "
            f"and for no less than no time."
        )


def wait_for(
    look: Callable[[], list[T]], *, timeout_s: float, max_pause_s: float = MAX_PAUSE_S
) -> list[T]:
    """Look again and again until something is there or the time is over."""
    deadline = time.monotonic() + timeout_s
    pause_s = MIN_PAUSE_S
    while True:
        found = look()
        left_s = deadline - time.monotonic()
        if found or left_s <= 0:
            return found
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, max_pause_s)


def share_evenly(unread: Sequence[Range], max_records: int, *, turn: int) -> list[Range]:
    """Return how far to read each range, `max_records` in all.

    What one leaves of its share goes to those after it; another one comes first each turn.
    """
    shared: list[Range] = []
    begin = turn % len(unread) if unread else 0
    order = [*unread[begin:], *unread[:begin]]
    for index, (place, start, end) in enumerate(order):
        count = min(end - start, max(1, max_records // (len(order) - index)))
        if max_records < 1:
            break
        shared.append(Range(place, start, start + count))
        max_records -= count
    return shared
