"""Epochs of producers: one counter for all ids of a log, so there is nothing to forget.

`<log>/~producers/epoch.json`, version 1: {"version": 1, "epoch": <the newest that was handed out>}.

Promises:
- An epoch is handed out once, whatever id asks, and is greater than every one before it.
- It is on the disk before it is handed out.
- With the file lost it goes on from the clock's second, as the store's epochs begin: far past what
  counting reaches.
"""

import json
from collections.abc import Callable
from pathlib import Path

from headrace.errors import LogError
from headrace.log.embedded.files import (
    disk_errors,
    locked,
    make_folder,
    sync_folder,
    write_new_file,
)

__all__ = ["next_epoch"]

VERSION = 1
_FOLDER = "~producers"  # "~" is in no topic's name


def next_epoch(
    path: Path, *, newest_stored: Callable[[], int], clock: Callable[[], int], sync: bool
) -> int:
    """Return a new epoch, also greater than `newest_stored`, asked under the lock. DiskFull."""
    folder = path / _FOLDER
    file = folder / "epoch.json"
    with disk_errors(folder):
        if not folder.is_dir():
            make_folder(folder)
            if sync:
                sync_folder(path)
    with locked(folder / "lock"), disk_errors(file):
        kept = _read_epoch(file) if file.exists() else clock() // 1_000_000
        epoch = max(kept, newest_stored()) + 1
        content = {"version": VERSION, "epoch": epoch}
        write_new_file(file, json.dumps(content).encode(), sync=sync)
    return epoch


def _read_epoch(file: Path) -> int:
    try:
        content = json.loads(file.read_bytes())
        version, epoch = content["version"], content["epoch"]
    except (ValueError, KeyError, TypeError) as error:
        raise LogError(
            f"{file}: the newest epoch of producers cannot be read ({error}). Remove the file: "
            f"epochs then go on from the clock's second."
        ) from error
    if version != VERSION:
        raise LogError(
            f"{file}: this file has format version {version}, this Headrace reads version "
            f"{VERSION}. Use the Headrace that made it, or a newer one."
        )
    return int(epoch)
