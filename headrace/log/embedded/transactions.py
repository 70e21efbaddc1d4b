"""Appends that are stored together or not at all, across partitions and topics.

The locks of all partitions are held throughout, always taken in the same order. Then:

1. Every batch is written and synced, marked with the transaction's number. No end moves, so nobody
   sees them; should we die, whoever comes next finds a transaction that was not decided, and cuts.
2. The decision, one file `<log>/~transactions/<number>`, is written and synced. From now on the
   transaction is committed: should we die, whoever comes next finds the decision, and adopts.
3. Every partition's end moves past its batch.

A decision is kept until the ends of its partitions are synced past it; `settle_decisions` sees to
that. Not promised: that the partitions show their batches at the same moment; the rest of what a
process showed before it died comes with the next append there, or soon after somebody looks.
"""

import json
import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import faults
from headrace.log.base import Partition, Producer, Range
from headrace.log.embedded.appender import Appender, Written
from headrace.log.embedded.files import (
    disk_errors,
    locked,
    make_folder,
    sync_folder,
    write_new_file,
)

__all__ = [
    "Share",
    "append_together",
    "decisions",
    "is_decided",
    "settle_decisions",
    "written_ranges",
]

_FOLDER = "~transactions"  # "~" is in no topic's name

logger = logging.getLogger("headrace.log")


@dataclass(frozen=True)
class Share:
    """What a transaction brings to one partition."""

    partition: Partition
    appender: Appender
    payload: Any
    count: int
    producer: Producer | None


def written_ranges(shares: Sequence[Share], written: Sequence[Written]) -> list[Range]:
    """Return where shares were written."""
    return [
        Range(share.partition, each.start, each.end.offset)
        for share, each in zip(shares, written, strict=True)
    ]


def is_decided(path: Path, number: int) -> bool:
    """Whether a transaction of the log was committed, as long as that matters."""
    return _file(path, number).exists()


def decisions(path: Path) -> list[Path]:
    """Return the decisions that are kept, in no order: each file lists its partitions as JSON."""
    return [file for file in (path / _FOLDER).glob("*") if not file.name.endswith(("~", "lock"))]


def _file(path: Path, number: int) -> Path:
    return path / _FOLDER / f"{number:016x}"


def append_together(path: Path, shares: Sequence[Share], *, sync: bool) -> list[Written]:
    """Append to several partitions, one share each: all or nothing. ProducerFenced, DiskFull."""
    number = secrets.randbits(63)
    with ExitStack() as held:
        for share in sorted(shares, key=lambda share: share.partition):
            held.enter_context(share.appender.held())
        for share in shares:
            share.appender.check_producer(share.producer)
        begun: list[Appender] = []
        try:
            written = []
            for share in shares:
                begun.append(share.appender)
                each = share.appender.write_held(number, share.payload, share.count, share.producer)
                written.append(each)
                faults.reach("log_in_transaction")
            for share in shares:
                share.appender.sync_held()
            faults.reach("log_before_decision")
            _decide(path, number, shares, sync=sync)
        except BaseException:
            # First nobody may take it for decided any more. If that fails the batches stay, for
            # the next one to adopt or to cut, all alike.
            _withdraw(path, number, sync=sync)
            for appender in begun:
                appender.take_back_held()
            raise
        faults.reach("log_after_decision")
        for share in shares:
            try:
                share.appender.acknowledge_held()
            except OSError:
                # It is committed, so this is no failure: the next one to come adopts it.
                logger.warning("%s: its end could not be moved", share.partition, exc_info=True)
            faults.reach("log_in_acknowledgement")
    return written


def _withdraw(path: Path, number: int, *, sync: bool) -> None:
    file = _file(path, number)
    for name in (file, file.with_name(file.name + "~")):
        if name.exists():
            name.unlink()
            if sync:
                sync_folder(name.parent)


def _decide(path: Path, number: int, shares: Sequence[Share], *, sync: bool) -> None:
    if not (path / _FOLDER).is_dir():
        make_folder(path / _FOLDER)
        if sync:
            sync_folder(path)
    places = [share.partition for share in shares]
    write_new_file(_file(path, number), json.dumps(places).encode(), sync=sync)


def settle_decisions(path: Path, settle: Callable[[Iterable[Partition]], None]) -> None:
    """Forget decisions, once `settle` has synced the ends of their partitions past them."""
    if not (path / _FOLDER).is_dir():
        return
    with locked(path / _FOLDER / "lock"), disk_errors(path / _FOLDER):
        found = decisions(path)
        places = [Partition(*place) for file in found for place in json.loads(file.read_text())]
        settle(dict.fromkeys(places))
        for file in found:
            file.unlink()
