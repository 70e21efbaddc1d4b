"""What the entries of a queue's book, in their order, make of the queue.

All consumers of a queue read the same entries in the same order, and each works out the same state
from them: who holds which record, and since when. An entry only says what its writer wants; what
comes of it is decided by the entries before it. So of two that want the same record one gets it,
and both know who, without asking anybody. The time of an entry is the broker's, so clocks of
consumers decide nothing.

An entry is JSON, an object with these members (version 1):

    v        1
    by       who wrote it
    do       what is wanted, with its own members:
      enter     settings   the queue's; refused when other consumers use others
                starts     [[partition, first offset to hand out, last sequence of dead letters], …]
      take      max        up to so many records: those that are free again, then new ones
                ends       [[partition, where it ends], …]: new ones are before these
                gone       [[partition, first offset left], …]: what was before is not there; if
                           that is news, nothing is handed out
      finish, release, reject
                records    [[partition, offset, deliveries], …] that the writer holds
      buried    batch      [partition, sequence] of dead letters that are in their topic
      show                 the writer is there
      leave                it is not: what it holds is free
      snapshot  at, state  the state after the entry at an offset; it changes nothing
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.consume.polling import share_evenly
from headrace.consume.queue_book import Gone
from headrace.consume.queue_records import (
    CONSUMER_SILENCE_MS,
    MAX_DEAD_BATCH_RECORDS,
    MAX_OPEN_RECORDS,
    DeadBatch,
    DeadRow,
    Held,
)
from headrace.consume.queues import QueueSettings
from headrace.log.base import Partition, Range
from headrace.wording import counted

__all__ = ["VERSION", "Dying", "Entry", "Outcome", "QueueState"]

VERSION = 1
#: How many records of all partitions are handed out, free again or dying at a time: a snapshot of
#: them fits one record.
MAX_OPEN_IN_ALL = 10_000

_NEVER_MS = 1 << 62
_FREE_MS = -1


class Entry(NamedTuple):
    """An entry as it stands in the book."""

    offset: int
    time_ms: int
    content: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What came of an entry, for its writer."""

    again: Sequence[Held] = ()
    new: Sequence[Range] = ()
    gone: Sequence[Gone] = ()
    late: Sequence[Held] = ()
    #: The settings of so many others, which differ.
    refused: tuple[QueueSettings, int] | None = None


class Dying(NamedTuple):
    """Records on their way to the dead-letter topic, and who found them since when."""

    batch: DeadBatch
    by: str
    since_ms: int


@dataclass
class _Open:
    """A record that was handed out and is not done; free when nobody holds it."""

    deliveries: int
    by: str | None
    until_ms: int


@dataclass
class QueueState:
    """A queue after some entries of its book."""

    settings: QueueSettings | None = None
    now_ms: int = 0
    cursors: dict[int, int] = field(default_factory=dict)  # what is next to hand out
    sequences: dict[int, int] = field(default_factory=dict)  # of the last dead letters
    consumers: dict[str, int] = field(default_factory=dict)  # when each was last seen
    dying: list[Dying] = field(default_factory=list)
    _open: dict[tuple[int, int], _Open] = field(default_factory=dict)
    _free: set[tuple[int, int]] = field(default_factory=set)
    _next_expiry_ms: int = _NEVER_MS

    def apply(self, entry: Entry) -> Outcome:
        """Go on to the state after an entry."""
        content, by = entry.content, entry.content["by"]
        if content["do"] == "snapshot":
            return Outcome()
        self.now_ms = max(self.now_ms, entry.time_ms)
        self._expire(by)
        do = content["do"]
        if do == "leave":
            self.consumers.pop(by, None)
            self._give_back([at for at, each in self._open.items() if each.by == by], by)
            return Outcome()
        if do == "enter":
            return self._enter(by, QueueSettings(**content["settings"]), content["starts"])
        self.consumers[by] = self.now_ms
        if do == "take":
            return self._take(entry)
        if do == "buried":
            number, sequence = content["batch"]
            self.dying = [each for each in self.dying if each.batch[:2] != (number, sequence)]
            return Outcome()
        return self._settle(do, by, content.get("records", ()))

    def has_free(self, now_ms: int) -> bool:
        """Say whether there is something to hand out again, or to bury, at a time."""
        return bool(self._free) or self._next_expiry_ms <= now_ms

    def first_free(self, number: int) -> int | None:
        """Return the first offset of a partition that is free again."""
        return min((offset for each, offset in self._free if each == number), default=None)

    def unread(self, ends: Iterable[Sequence[int]]) -> list[Range]:
        """Return what may be handed out for the first time, of partitions with these ends.

        The ranges are of partitions without the topic's name, which the book does not need.
        """
        counts = Counter(number for number, _ in self._open)
        for dying in self.dying:
            counts[dying.batch.number] += len(dying.batch.rows)
        left = MAX_OPEN_IN_ALL - counts.total()
        unread = []
        for number, end in sorted(map(tuple, ends)):
            start = self.cursors.get(number, end)
            count = min(end - start, MAX_OPEN_RECORDS - counts[number], left)
            if count > 0:
                left -= count
                unread.append(Range(Partition("", number), start, start + count))
        return unread

    # The entries.

    def _enter(self, by: str, settings: QueueSettings, starts: Iterable[Sequence[int]]) -> Outcome:
        silent_ms = self.now_ms - CONSUMER_SILENCE_MS
        self.consumers = {id: seen for id, seen in self.consumers.items() if seen > silent_ms}
        others = len(self.consumers.keys() - {by})
        if self.settings is not None and self.settings != settings and others:
            return Outcome(refused=(self.settings, others))
        self.settings = settings
        self.consumers[by] = self.now_ms
        for number, offset, sequence in starts:
            self.cursors.setdefault(number, offset)
            self.sequences.setdefault(number, sequence)
        return Outcome()

    def _take(self, entry: Entry) -> Outcome:
        assert self.settings is not None, "who takes has entered"
        content = entry.content
        skipped = (self._skip(number, first) for number, first in content["gone"])
        if gone := [each for each in skipped if each is not None]:
            return Outcome(gone=gone)
        most = self.settings.max_deliveries
        # The settings may have changed meanwhile.
        too_often = [at for at in self._free if self._open[at].deliveries >= most]
        self._die([(at, None) for at in too_often], content["by"])
        until_ms = self.now_ms + self.settings.lock_ms
        again = []
        for at in sorted(self._free)[: content["max"]]:
            deliveries = self._open[at].deliveries + 1
            self._open[at] = _Open(deliveries, content["by"], until_ms)
            again.append(Held(*at, deliveries))
        self._free.difference_update(each[:2] for each in again)
        unread = self.unread(content["ends"])
        new = share_evenly(unread, content["max"] - len(again), turn=entry.offset)
        for place, start, end in new:
            self.cursors[place.number] = end
            for offset in range(start, end):
                self._open[place.number, offset] = _Open(1, content["by"], until_ms)
        if again or new:
            self._next_expiry_ms = min(self._next_expiry_ms, until_ms)
        return Outcome(again=again, new=new)

    def _skip(self, number: int, first_offset: int) -> Gone | None:
        dropped = [at for at in self._free if at[0] == number and at[1] < first_offset]
        self._forget(dropped)
        start = self.cursors[number]
        self.cursors[number] = max(start, first_offset)
        is_gone = dropped or start < first_offset
        return Gone(number, len(dropped), start, self.cursors[number]) if is_gone else None

    def _settle(self, do: str, by: str, records: Iterable[Sequence[int]]) -> Outcome:
        late: list[Held] = []
        held: list[tuple[int, int]] = []
        for each in (Held(*record) for record in records):
            at = (each.number, each.offset)
            found = self._open.get(at)
            is_held = found is not None and (found.by, found.deliveries) == (by, each.deliveries)
            if is_held and at not in held:
                held.append(at)
            else:
                late.append(each)
        if do == "finish":
            self._forget(held)
        elif do == "release":
            self._give_back(held, by)
        elif do == "reject":
            self._die([(at, "rejected") for at in held], by)
        return Outcome(late=late)

    # What becomes of records.

    def _expire(self, by: str) -> None:
        if self._next_expiry_ms > self.now_ms:
            return
        held = {at: each for at, each in self._open.items() if each.by is not None}
        self._give_back([at for at, each in held.items() if each.until_ms <= self.now_ms], by)
        left = (each.until_ms for each in self._open.values() if each.by is not None)
        self._next_expiry_ms = min(left, default=_NEVER_MS)

    def _give_back(self, places: Iterable[tuple[int, int]], by: str) -> None:
        """Make records free; those that were handed out too often die."""
        assert self.settings is not None, "who held them has entered"
        dead = []
        for at in places:
            if self._open[at].deliveries >= self.settings.max_deliveries:
                dead.append((at, None))
            else:
                self._open[at] = _Open(self._open[at].deliveries, None, _FREE_MS)
                self._free.add(at)
        self._die(dead, by)

    def _die(self, dead: Iterable[tuple[tuple[int, int], str | None]], by: str) -> None:
        """Send records to the dead-letter topic, for a reason or because it was too often."""
        rows: dict[int, list[DeadRow]] = {}
        for (number, offset), reason in sorted(dead, key=lambda each: each[0]):
            deliveries = self._open[number, offset].deliveries
            reason = reason or f"delivered {counted(deliveries, 'time')}"
            row = DeadRow(offset, deliveries, reason)
            rows.setdefault(number, []).append(row)
            self._forget([(number, offset)])
        for number, own in rows.items():
            for start in range(0, len(own), MAX_DEAD_BATCH_RECORDS):
                self.sequences[number] += 1
                batch = own[start : start + MAX_DEAD_BATCH_RECORDS]
                dead_batch = DeadBatch(number, self.sequences[number], batch)
                self.dying.append(Dying(dead_batch, by, self.now_ms))

    def _forget(self, places: Iterable[tuple[int, int]]) -> None:
        for at in places:
            del self._open[at]
            self._free.discard(at)

    # Snapshots.

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON's own types."""
        return {
            "settings": None if self.settings is None else self.settings._asdict(),
            "now_ms": self.now_ms,
            "cursors": [[each, at, self.sequences[each]] for each, at in self.cursors.items()],
            "consumers": self.consumers,
            "dying": self.dying,
            "open": [
                [*at, each.deliveries, each.by, each.until_ms] for at, each in self._open.items()
            ],
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "QueueState":
        """Return what `to_json` was called on."""
        state = cls(
            settings=stored["settings"] and QueueSettings(**stored["settings"]),
            now_ms=stored["now_ms"],
            cursors={number: offset for number, offset, _ in stored["cursors"]},
            sequences={number: sequence for number, _, sequence in stored["cursors"]},
            consumers=stored["consumers"],
        )
        for (number, sequence, rows), by, since_ms in stored["dying"]:
            batch = DeadBatch(number, sequence, [DeadRow(*row) for row in rows])
            state.dying.append(Dying(batch, by, since_ms))
        for number, offset, deliveries, by, until_ms in stored["open"]:
            state._open[number, offset] = _Open(deliveries, by, until_ms)
            if by is None:
                state._free.add((number, offset))
            else:
                state._next_expiry_ms = min(state._next_expiry_ms, until_ms)
        return state
