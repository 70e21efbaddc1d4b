"""What `append` remembers of its runs, so that one that stopped in the middle can go on.

    <project>/.headrace/appends/<number>      one file per slot, JSON, padded to FILE_BYTES
    {"version": 1, "producer", "epoch", "base",                      who appends, its sequences
     "task": {"log", "topic", "source", "options"},                  what, where to and how
     "finished", "before": {"records", "line", "digest"}, "after"}   how far it was

A run appends with an idempotent producer: the sequence of a batch is `base` and the number of
records up to its end. So the log itself knows how far a run got, in the same transaction as the
records. The file knows the rest: `before` and `after` are how many records, the number of the last
line and a digest of all records, up to the batch that is being appended and with it.

Promises:
- A slot belongs to one process at a time, and its epochs and sequences only grow: they are synced
  before a run appends anything.
- A run that stopped, or finished, is known until MAX_SLOTS others took place since; those that
  finished are forgotten first. A file has one run, the newest; stdin is another input each time, so
  a run of it that stopped is kept beside the newer ones until it went on.
- Everything is written in place, so that a run can go on and end on a full disk.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from headrace.errors import TopicNotFound, UsageError
from headrace.log import Log, Partition, Producer
from headrace.log.embedded.files import disk_errors, locked, make_folder, write_whole

__all__ = ["Digest", "Run", "Slot", "Task", "Told", "take_slot"]

VERSION = 1
FILE_BYTES = 8192
FILE_MODE = 0o600
MAX_SLOTS = 64
#: As many sequences belong to one run; there is room for 8 million runs of a slot.
RUN_SEQUENCES = 1 << 40
MAX_TEXT = 1024


class Digest:
    """Tells whether the same records come again, however they are cut into batches."""

    def __init__(self) -> None:
        self._content, self._lengths = xxhash.xxh3_128(), xxhash.xxh3_128()

    def update(self, values: pa.BinaryArray) -> None:
        """Add records, none of which is null."""
        if len(values):
            _, offsets, data = values.buffers()
            bounds = np.frombuffer(offsets, np.int32)[
                values.offset : values.offset + len(values) + 1
            ]
            if data is not None:
                self._content.update(memoryview(data)[int(bounds[0]) : int(bounds[-1])])
            self._lengths.update(np.diff(bounds).tobytes())

    def text(self) -> str:
        """Return the digest of what was added so far."""
        return self._content.hexdigest() + self._lengths.hexdigest()


@dataclass(frozen=True)
class Told:
    """How far a run was: records, the number of the last line, a digest of the records."""

    records: int = 0
    line: int = 0
    digest: str = Digest().text()


@dataclass(frozen=True)
class Task:
    """What is appended where; with the same one a run goes on."""

    log: str
    topic: str
    source: str  # a path, or stdin
    options: str  # as they were written

    def __post_init__(self) -> None:
        """Keep what is long as a digest: it is only compared."""
        for name in ("log", "source", "options"):
            text = getattr(self, name)
            if len(json.dumps(text)) > MAX_TEXT:
                object.__setattr__(self, name, xxhash.xxh3_128_hexdigest(text.encode()))

    @property
    def written_options(self) -> str | None:
        """The options as they were written; None if they were too long to be kept."""
        return self.options if not self.options or self.options.startswith("-") else None

    def is_same_input(self, other: "Task") -> bool:
        """Whether only the options differ."""
        return replace(self, options="") == replace(other, options="")


@dataclass(frozen=True)
class Run:
    """One `append`: who appends, what, and how far it was."""

    producer: str
    epoch: int
    base: int
    task: Task
    finished: bool = False
    before: Told = field(default_factory=Told)
    after: Told = field(default_factory=Told)

    def sequence(self, records: int) -> Producer:
        """Return the producer for a batch up to whose end there are so many records."""
        return Producer(self.producer, self.epoch, self.base + records)

    def stored_records(self, log: Log) -> int:
        """Return how many records of this run the log holds."""
        try:
            partitions = log.topic(self.task.topic).partitions
        except TopicNotFound:
            return 0
        places = (Partition(self.task.topic, number) for number in range(partitions))
        newest = (log.last_sequence(place, self.producer) for place in places)
        return max((max(0, each - self.base) for each in newest if each is not None), default=0)

    def stored(self, log: Log) -> Told:
        """Return how far the log holds this run; without a digest where that is not known."""
        records = self.stored_records(log)
        for told in (self.after, self.before):
            if told.records == records:
                return told
        return Told(records, 0, "")


class Slot:
    """A file that this process holds, and the run that it tells of.

    `earlier` is that run if it is one of the same task, to go on with; None: there is none.
    """

    def __init__(self, path: Path, descriptor: int, run: Run | None, *, takes: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self.run = run
        self.earlier = run if takes else None

    def begin(self, task: Task) -> Run:
        """Begin a new run; what is known of the one before it is forgotten. DiskFull."""
        run = Run(f"headrace.append:{secrets.token_hex(8)}", 1, 0, task)
        if self.run is not None:
            old = self.run
            run = Run(old.producer, old.epoch + 1, old.base + RUN_SEQUENCES, task)
        return self._write(run, sync=True)

    def go_on(self, stored: Told) -> Run:
        """Go on with the run behind what is stored. DiskFull."""
        assert self.run is not None
        run = replace(
            self.run, epoch=self.run.epoch + 1, finished=False, before=stored, after=stored
        )
        return self._write(run, sync=True)

    def plan(self, after: Told) -> None:
        """Take note that everything up to here is about to be stored."""
        assert self.run is not None
        self._write(replace(self.run, before=self.run.after, after=after))

    def finish(self) -> None:
        """Take note that everything is stored."""
        assert self.run is not None
        self._write(replace(self.run, before=self.run.after, finished=True))

    def _write(self, run: Run, *, sync: bool = False) -> Run:
        content = json.dumps({"version": VERSION, **asdict(run)}).encode()
        with disk_errors(self._path):
            write_whole(self._descriptor, content.ljust(FILE_BYTES - 1) + b"\n", 0)
            if sync:
                os.fsync(self._descriptor)
        self.run = run
        return run


def _read(descriptor: int) -> Run | None:
    """Return the run that a file tells of, None if it is empty or torn."""
    try:
        content = json.loads(os.pread(descriptor, FILE_BYTES, 0))
        if content.pop("version") != VERSION:
            return None
        before, after = Told(**content.pop("before")), Told(**content.pop("after"))
        return Run(task=Task(**content.pop("task")), before=before, after=after, **content)
    except (ValueError, TypeError, KeyError):
        return None


@contextmanager
def take_slot(
    folder: Path, task: Task, *, alone: bool, fits: Callable[[Run], bool] = lambda _: True
) -> Iterator[Slot]:
    """Hold the slot of the newest run of this input that fits, else a free one. DiskFull.

    `earlier` of the slot is that run. What does not fit is left as it is while there are others.
    UsageError: `alone`, and a run of the same input is under way.
    """
    with disk_errors(folder):
        make_folder(folder)
    with locked(folder / "lock"), disk_errors(folder):
        wanted = _Wanted(task, fits)
        chosen = _choose(folder, wanted, alone=alone)
    try:
        yield Slot(chosen.path, chosen.descriptor, chosen.run, takes=wanted.takes(chosen.run))
    finally:
        os.close(chosen.descriptor)


class _Wanted(NamedTuple):
    """Which runs may be taken up, or forgotten, by a new one."""

    task: Task
    fits: Callable[[Run], bool]

    def takes(self, run: Run | None) -> bool:
        """Tell whether it is such a run."""
        return run is not None and run.task.is_same_input(self.task) and self.fits(run)


class _Held(NamedTuple):
    """A file of a slot that this process has locked."""

    path: Path
    descriptor: int
    run: Run | None

    def rank(self, wanted: _Wanted) -> tuple[int, int]:
        """Return what is smaller for a slot that is rather to be used."""
        age = os.fstat(self.descriptor).st_mtime_ns
        if wanted.takes(self.run):
            return 0, -age
        return (1 if self.run is None or self.run.finished else 2), age


def _choose(folder: Path, wanted: _Wanted, *, alone: bool) -> _Held:
    numbers = [int(file.name) for file in folder.iterdir() if file.name.isdigit()]
    held: list[_Held] = []
    chosen: _Held | None = None
    try:
        for number in numbers:
            held += _try_hold(folder / str(number), wanted.task, alone=alone)
        ranks = [each.rank(wanted) for each in held]
        best = min(range(len(held)), key=ranks.__getitem__, default=None)
        if best is not None and (ranks[best][0] == 0 or len(numbers) >= MAX_SLOTS):
            chosen = held[best]
        else:
            chosen = _make(folder / str(max(numbers, default=-1) + 1))
    finally:
        for each in held:
            if each is not chosen:
                os.close(each.descriptor)
    return chosen


def _try_hold(path: Path, task: Task, *, alone: bool) -> Iterator[_Held]:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    run = _read(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        if alone and run is not None and run.task.is_same_input(task):
            raise UsageError(
                f"{task.source}: another process is appending it to {task.topic}; wait until that "
                f"has ended."
            ) from None
    else:
        # Read again: who held it before may have written since.
        yield _Held(path, descriptor, _read(descriptor))


def _make(path: Path) -> _Held:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return _Held(path, descriptor, None)
