"""Work that takes seconds and cannot be interrupted, such as starting Spark.

Promise: who is told to stop does not wait for it. The work is left behind in its thread and ends
when the process does; `is_left_behind` tells the process to end at once, without taking the
interpreter apart under that thread.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Stopped", "is_left_behind", "unless_stopped"]

Result = TypeVar("Result")

_THREAD = "headrace-start"
_LOOK_SECONDS = 0.05


class Stopped(Exception):
    """The engine was told to stop before it ran."""


def unless_stopped(work: Callable[[], Result], stop: threading.Event) -> Result:
    """Return what work gives, or raise what it raises. Stopped: `stop` was set meanwhile."""
    found: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below, by the thread that waits
            failures.append(error)

    thread = threading.Thread(target=run, name=_THREAD, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_SECONDS)
        if stop.is_set():
            raise Stopped
    if failures:
        raise failures[0]
    return found[0]


def is_left_behind() -> bool:
    """Tell whether work was left behind and is still going on."""
    return any(thread.name == _THREAD for thread in threading.enumerate())
