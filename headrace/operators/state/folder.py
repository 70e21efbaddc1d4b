"""The folder that runs are kept in: written once, named in the ledger, removed when nobody does.

Promises:
- A file under its name is whole: it is written under another one, synced and renamed.
- A file is checked when it is first opened, and kept open for later turns.
- What a crash leaves behind is removed by `sweep`, which the next engine calls as it starts.
"""

import errno
import os
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from headrace import faults
from headrace.errors import DiskFull, StateDamaged, StoreError
from headrace.operators.state.entries import SHARDS, Entries, Shards, clip
from headrace.operators.state.format import Described, read_run, run_bytes
from headrace.wording import counted

__all__ = ["Run", "StateFolder"]

_SUFFIX = ".run"
_UNFINISHED = ".unfinished"


@dataclass(frozen=True)
class Run:
    """What the ledger says of a run: its file, and the shards of it that count.

    Others of its shards may have been merged into a newer run. `rows` are those that count.
    """

    file: str
    shards: Shards
    rows: int
    largest_clock_us: int
    file_bytes: int


class StateFolder:
    """The runs in one folder, which is made with the first of them. Safe to use from threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open: dict[str, Described] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["StateFolder"], tuple[Path]]:
        return StateFolder, (self.path,)  # a Spark task opens what it needs by itself

    def write(self, entries: Entries, shards: Shards = Shards(0, SHARDS)) -> Run:  # noqa: B008 - frozen
        """Write a run, durable when this returns. DiskFull, StoreError."""
        file = f"{uuid4().hex}{_SUFFIX}"
        data = run_bytes(entries, shards)
        unfinished = self.path / f"{file}{_UNFINISHED}"
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            with unfinished.open("xb") as target:
                target.write(data)
                target.flush()
                os.fsync(target.fileno())
            faults.reach("state_before_rename")
            unfinished.rename(self.path / file)
            _sync_folder(self.path)
        except OSError as error:
            raise self._failed(unfinished, error) from error
        return Run(file, shards, entries.rows, int(entries.clock_us.max()), data.size)

    def _failed(self, path: Path, error: OSError) -> DiskFull | StoreError:
        path.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return DiskFull(
                f"{path}: no space left for operator state. The turn is not committed, and "
                f"nothing is lost. Free some space and run again."
            )
        return StoreError(f"{path}: operator state cannot be written: {error}")

    def read(self, run: Run) -> Entries:
        """Return the entries of a run that count, mapped into memory. StateDamaged, StoreError."""
        with self._lock:
            described = self._open.get(run.file)
            if described is None:
                described = self._open[run.file] = read_run(self.path / run.file)
        entries = clip(described.entries, run.shards)
        whole = described.shards.first <= run.shards.first and run.shards.end <= (
            described.shards.end
        )
        if not whole or entries.rows != run.rows:
            raise StateDamaged(
                f"{self.path / run.file}: the ledger has {counted(run.rows, 'row')} of it in "
                f"shards {run.shards.first} to {run.shards.end}, the file {entries.rows}; it is of "
                f"another store. Move the store and its folder of state away together and run "
                f"again: both are built anew from the log."
            )
        return entries

    def cut(self, run: Run, shards: Shards) -> Run | None:
        """Return what of a run lies in some shards, None if nothing does."""
        first, end = max(run.shards.first, shards.first), min(run.shards.end, shards.end)
        if first >= end:
            return None
        if (first, end) == run.shards:
            return run
        rows = clip(self.read(run), Shards(first, end)).rows
        return replace(run, shards=Shards(first, end), rows=rows) if rows else None

    def remove(self, files: Iterable[str]) -> None:
        """Remove files that no manifest names any more."""
        for file in files:
            with self._lock:
                self._open.pop(file, None)
            (self.path / file).unlink(missing_ok=True)

    def sweep(self, named: Collection[str]) -> list[str]:
        """Remove what crashes left behind: all that is not named. Return what was removed."""
        if not self.path.is_dir():
            return []
        orphans = [
            path.name
            for path in sorted(self.path.iterdir())
            if path.name not in named and path.name.endswith((_SUFFIX, _UNFINISHED))
        ]
        self.remove(orphans)
        return orphans

    def verify(self, runs: Iterable[Run]) -> None:
        """Read every byte of some runs again and check it.

        StateDamaged names the first bad one. StoreError: one cannot be opened.
        """
        for run in runs:
            read_run(self.path / run.file)
            self.read(run)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
