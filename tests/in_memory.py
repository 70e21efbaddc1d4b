"""Temporary folders of the tests in memory, where the system has a file system for that.

Logs and stores sync whatever they acknowledge. That a disk keeps what it synced is not tested, and
to wait for it took a tenth of the suite's CPU time and more of its waiting: processes that are
killed leave the same files in memory. HEADRACE_TMP=disk leaves the folders where they are by
default, and any TMPDIR is used as it is.

A run holds a lock on its folder. One that was killed leaves the folder, and the next run, which can
take the lock, removes it.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["forget_folder", "use_memory"]

_MEMORY = Path("/dev/shm")
_NEEDED_BYTES = 4 << 30
_PREFIX = "headrace-run-"
_LOCK = "lock"

_made: list[tuple[Path, int]] = []  # with the descriptor that holds the lock


def use_memory() -> None:
    """Let this process, and those that it starts, make temporary folders in memory."""
    if "TMPDIR" in os.environ or os.environ.get("HEADRACE_TMP") == "disk" or not _is_large():
        return
    for left in _MEMORY.glob(f"{_PREFIX}*/{_LOCK}"):
        _remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_MEMORY))
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _made.append((folder, lock))
    # Of workers too, and of Spark.
    os.environ["TMPDIR"] = os.environ["SPARK_LOCAL_DIRS"] = tempfile.tempdir = str(folder)


def forget_folder() -> None:
    """Remove what this process made; workers use the folder of the one that started them."""
    for folder, lock in _made:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
    _made.clear()


def _remove_if_left(path: Path) -> None:
    try:
        lock = os.open(path, os.O_RDWR)
    except OSError:  # another run removes it, or it is another user's
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is in use
        return
    else:
        shutil.rmtree(path.parent, ignore_errors=True)
    finally:
        os.close(lock)


def _is_large() -> bool:
    try:
        return os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _NEEDED_BYTES
    except OSError:
        return False
