"""Temporary folders of the tests in memory, where the system has a file system for that.

Logs and stores sync whatever they acknowledge. That a disk keeps what it synced is not tested, and
to wait for it took a tenth of the suite's CPU time and more of its waiting: processes that are
killed leave the same files in memory. HEADRACE_TMP=disk leaves the folders where they are by
default, and any TMPDIR is used as it is.
"""

import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["forget_folder", "use_memory"]

_MEMORY = Path("/dev/shm")
_NEEDED_BYTES = 4 << 30
_PREFIX = "headrace-"


def use_memory() -> None:
    """Let this process, and those that it starts, make temporary folders in memory."""
    if "TMPDIR" in os.environ or os.environ.get("HEADRACE_TMP") == "disk" or not _is_large():
        return
    for left in _MEMORY.glob(f"{_PREFIX}*"):  # by a run that was killed
        if not Path("/proc", left.name.removeprefix(_PREFIX)).exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = _folder()
    folder.mkdir(exist_ok=True, mode=0o700)
    # Of workers too, and of Spark.
    os.environ["TMPDIR"] = os.environ["SPARK_LOCAL_DIRS"] = tempfile.tempdir = str(folder)


def forget_folder() -> None:
    """Remove what this process made; workers use the folder of the one that started them."""
    shutil.rmtree(_folder(), ignore_errors=True)


def _folder() -> Path:
    return _MEMORY / f"{_PREFIX}{os.getpid()}"


def _is_large() -> bool:
    try:
        return os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _NEEDED_BYTES
    except OSError:
        return False
