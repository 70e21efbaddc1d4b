"""Hold this process to its limits: the operating system does, whatever a query makes it do."""

import ctypes
import fcntl
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["confine", "die_with", "limit_memory", "private_bytes", "within"]

_NICENESS = 5
_OOM_SCORE = 800  # of 1000: where memory runs out, this process goes and the engine stays
_OPEN_FILES = 1_024
_PR_SET_NO_NEW_PRIVS = 38


def confine(*, file_bytes: int) -> None:
    """Give way to the engine, write no file larger than an answer, and leave no core behind."""
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    # Neither is there on other systems than Linux, and the limits above hold without them.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def die_with(lifeline: int) -> None:
    """End this process when the other end of a pipe is closed, whatever it is doing then.

    The kernel sends SIGIO, which ends a process that does not handle it.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def limit_memory(memory_bytes: int) -> None:
    """Let this process have so much memory of its own beside what it has now.

    Files that are mapped to be read do not count.
    """
    most = private_bytes() + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def private_bytes() -> int:
    """Return how many bytes of address space RLIMIT_DATA counts."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    return pages * resource.getpagesize()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """End this process by the kernel's timer unless the block is left before."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
