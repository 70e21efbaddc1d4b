"""Append what a source holds, batch by batch, so that it is always known which lines are stored.

Promises:
- A batch is stored whole or not at all, whatever partitions it goes to, and once: a run that went
  on does not store a record a second time.
- Records go by key; those without one are dealt out to the partitions, one by one.
- What ends a run early is raised with the lines that are stored, and with how to go on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.cli.log.lines import Lines, too_large
from headrace.cli.log.runs import Digest, Slot, Told
from headrace.cli.log.sources import Source
from headrace.cli.text.output import note
from headrace.errors import HeadraceError, LogError, UsageError
from headrace.log import APPENDS, MAX_RECORD_BYTES, Append, Log, Producer, Range
from headrace.log.records import check_keys, deal_out, record_bytes, share_out
from headrace.log.sharing import emptiest

__all__ = ["Appending", "Keys", "Tally"]

#: Returns the key of each record, in order; null where there is none.
Keys = Callable[[pa.Array], pa.Array]


@dataclass
class Tally:
    """What a run appended."""

    records: int = 0
    empty: int = 0
    without_key: int = 0
    places: dict[int, dict[str, int]] = field(default_factory=dict)

    def add(self, ranges: Sequence[Range]) -> None:
        """Count what one append wrote."""
        for each in ranges:
            number = each.partition.number
            place = self.places.setdefault(
                number, {"partition": number, "records": 0, "start": each.start, "end": 0}
            )
            place["records"] += each.span
            place["end"] = each.end


class Appending:
    """Appends a source to a topic."""

    def __init__(
        self,
        log: Log,
        topic: str,
        source: Source,
        *,
        keys: Keys,
        headers: list[dict[str, Any]],
        partition: int | None,
        deletes: bool,
        resume: str,
        is_file: bool,
    ) -> None:
        """Take what to append, and the command that goes on if this run stops."""
        self._log = log
        self._topic = log.topic(topic)
        self._source = source
        self._keys = keys
        self._headers = pa.scalar(headers or None, APPENDS.field("headers").type)
        self._partition = partition
        self._deletes = deletes
        self._resume = f"`{resume}`" if is_file else f"Pipe the same input into `{resume}`: it"
        self._is_file = is_file
        self._digest = Digest()
        self._tally = Tally()
        self._turn = emptiest(log.extents(topic))

    def run(self, slot: Slot, stored: Told) -> Tally:
        """Append all but the records that are stored, and return what was appended.

        UsageError: what is stored is not what the source begins with. What else is raised tells
        which lines are stored.
        """
        batches = self._skip(stored)
        try:
            for lines in batches:
                self._append(slot, lines)
            slot.finish()
        except HeadraceError as error:
            raise type(error)(f"{error}\n{self._tell(slot)}") from error
        except KeyboardInterrupt:
            note(f"interrupted. {self._tell(slot)}")
            raise
        return self._tally

    def _skip(self, stored: Told) -> Iterator[Lines]:
        """Return what comes behind the records that are stored."""
        left = stored.records
        while left:
            lines = next(self._source.batches, None)
            if lines is None:
                raise self._changed(stored)
            skipped = min(left, len(lines.values))
            self._digest.update(lines.values.slice(0, skipped))
            left -= skipped
            if left == 0 and stored.digest not in ("", self._digest.text()):
                raise self._changed(stored)
            if skipped < len(lines.values):
                rest = Lines(lines.values[skipped:], lines.numbers[skipped:], 0, lines.last)
                return chain([rest], self._source.batches)
        return self._source.batches

    def _changed(self, stored: Told) -> UsageError:
        advice = "Restore it; or append all of it with --again."
        if not self._is_file:
            advice = "Pipe the input of the append that stopped last; others go on after it."
        return UsageError(
            f"{self._source.name}: the records it begins with are not the {stored.records:,} "
            f"that were appended to {self._topic.name}, so this is not the input to go on "
            f"with, and nothing was appended. {advice}"
        )

    def _append(self, slot: Slot, lines: Lines) -> None:
        assert slot.run is not None
        keys = self._keys(lines.values)
        headers = pa.repeat(self._headers, len(keys))
        values = lines.values
        if self._deletes:
            if keys.null_count:
                lacking = np.flatnonzero(pc.is_null(keys).to_numpy(zero_copy_only=False))
                number = lines.numbers[int(lacking[0])]
                raise UsageError(
                    f"{self._source.name}, {self._source.noun} {number}: to delete a row its whole "
                    f"primary key is needed"
                )
            values = pa.nulls(len(keys), values.type)
        batch = pa.record_batch([keys, values, headers], schema=APPENDS)
        large = np.flatnonzero(record_bytes(batch) > MAX_RECORD_BYTES)
        if len(large):
            where = f"{self._source.name}, {self._source.noun} {lines.numbers[large[0]]}"
            raise too_large(where, "this record with its key and headers")
        if self._topic.settings.compact:
            check_keys(batch, topic=self._topic.name)
        self._digest.update(lines.values)
        records = slot.run.after.records + len(lines.values)
        slot.plan(Told(records, lines.last, self._digest.text()))
        self._tally.add(self._store(self._share(batch), slot.run.sequence(records)))
        self._tally.records += len(lines.values)
        self._tally.empty += lines.empty
        self._tally.without_key += keys.null_count

    def _share(self, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        if batch.num_rows == 0:
            return []
        if self._partition is not None:
            return [(self._partition, batch)]
        partitions = self._topic.partitions
        without = batch.column("key").null_count
        keyless = deal_out(without, partitions, first=self._turn)
        self._turn += without
        return list(share_out(batch, partitions=partitions, keyless=keyless))

    def _store(self, shares: list[tuple[int, pa.RecordBatch]], producer: Producer) -> list[Range]:
        name = self._topic.name
        appends = [
            Append(name, pa.Table.from_batches([rows]), number, producer) for number, rows in shares
        ]
        if len(appends) == 1:  # whole or not there by itself
            ((_, table, number, _),) = appends
            done = [self._log.append(name, table, partition=number, producer=producer)]
        else:
            done = self._log.append_all(appends)
        if any(each.duplicate for each in done):
            raise LogError(
                f"{name}: the log holds a later batch of producer {producer.id!r}, so this one "
                f"was not stored: the folder .headrace/appends is older than the log. Remove the "
                f"folder; then nothing that stopped can go on."
            )
        return [each for appended in done for each in appended.ranges]

    def _tell(self, slot: Slot) -> str:
        """Return which lines are stored, and how to go on."""
        assert slot.run is not None
        before, after = slot.run.before, slot.run.after
        try:
            stored = slot.run.stored(self._log)
        except HeadraceError:
            open_lines = f"{self._source.noun}s {before.line + 1:,} to {after.line:,}"
            known = f"{self._stored_lines(before.line)}; whether" if before.line else "Whether"
            return (
                f"{known} {open_lines} are stored, the log cannot be asked now. {self._resume} "
                f"finds out, and goes on behind what is stored."
            )
        if stored.records == 0:
            return "Nothing was stored. Correct this and run the same command again."
        return (
            f"{self._stored_lines(stored.line)}, no other is. {self._resume} goes on behind "
            f"{'it' if stored.line == 1 else 'them'}."
        )

    def _stored_lines(self, last: int) -> str:
        noun = self._source.noun.capitalize()
        if last == 1:
            return f"{noun} 1 of {self._source.name} is stored"
        return f"{noun}s 1 to {last:,} of {self._source.name} are stored"
