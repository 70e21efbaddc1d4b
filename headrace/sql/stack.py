"""Work on a stack of its own, so that how deep it may go does not depend on who asks for it."""

import gc
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["MAX_FRAMES", "on_own_stack"]

#: Frames of Python on that stack. A level of nesting takes sqlglot's parser, stamped, up to 60.
MAX_FRAMES = 10_000
_STACK_BYTES = 256 * 1024 * 1024  # of address space; only what is used becomes memory

_Result = TypeVar("_Result")
#: All settings are of the whole process, so one thread at a time changes and restores them.
_settings = threading.Lock()


def on_own_stack(work: Callable[[], _Result]) -> _Result:
    """Return what `work` returns, or raise what it raises; it has `MAX_FRAMES` frames to itself.

    Garbage is not collected meanwhile: trees are all in use until their project is read, and to
    look at them again and again took a fifth of the time (1 MB, 19 s with and 15 s without).
    """
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        frames = sys.getrecursionlimit()
        # Never less than it was: the caller, who waits, may stand deeper than that already.
        sys.setrecursionlimit(max(frames, MAX_FRAMES))
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below, for the caller
            errors.append(error)
        finally:
            sys.setrecursionlimit(frames)

    with _settings:
        stack_bytes = threading.stack_size(_STACK_BYTES)
        collects = gc.isenabled()
        gc.disable()
        try:
            thread = threading.Thread(target=run, name="headrace-sql", daemon=True)
            thread.start()
        finally:
            threading.stack_size(stack_bytes)
        thread.join()
        if collects:
            gc.enable()
    if errors:
        raise errors[0]
    return results[0]
