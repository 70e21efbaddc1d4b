"""Which sinks are told of a turn, and when: the engine's side of emission (docs/design.md, Time).

- `changes`: with every turn that changes something.
- `every`: at most so often by this engine's clock; what changes meanwhile is kept in the store.
- `final`: when rows close, and then when they are corrected.

Rows that wait, of a new sink or of one that was told less often before, are told with the next
turn, which is taken for their sake if there is nothing to read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.errors import Problem
from headrace.ledger.entries import (
    Emission,
    Progress,
    SinkEntry,
    StreamPartition,
    Swap,
    When,
    watermark_of,
)
from headrace.model.definitions import Sink, View
from headrace.plan.stages import Fold, streams_by_table
from headrace.plan.tables import Table

__all__ = ["NEVER_US", "Emitting"]

#: Longer than anybody waits.
NEVER_US = 1 << 62

Clocks = Mapping[StreamPartition, Progress]


@dataclass
class Emitting:
    """The sinks of a project and the versions they are told of; `wall` never goes back."""

    sinks: Sequence[Sink]
    views: Mapping[str, View]
    wall: Callable[[], int]
    _versions: dict[str, str] = field(default_factory=dict)  # by sink
    _told_us: dict[str, int] = field(default_factory=dict)
    _waiting: set[str] = field(default_factory=set)  # sinks that rows wait for in the store
    ending: bool = False  # the engine is about to end: every sink is due

    def problems(self, known: Iterable[SinkEntry]) -> list[Problem]:
        """Return which sinks would go on where rows of another view, or in another mode, are."""
        told = {entry.topic: entry for entry in known if entry.version}
        return [
            Problem(
                sink.location,
                f"sink {sink.name} writes to {sink.topic}, which holds rows of {old.view} in mode "
                f"'{old.mode}': its readers would take them for rows of {sink.view} in mode "
                f"'{sink.mode}'; choose another topic",
            )
            for sink in self.sinks
            if (old := told.get(sink.topic)) is not None
            and (old.view, old.mode) != (sink.view, sink.mode)
        ]

    def begin(
        self, shown: Mapping[str, Fold], known: Iterable[SinkEntry]
    ) -> list[tuple[SinkEntry, Table | None]]:
        """Return what the store has to know of every sink, given the folds that readers see.

        `known` is what the store knows already.
        """
        told = {entry.topic: entry.version for entry in known}
        found: list[tuple[SinkEntry, Table | None]] = []
        for sink in self.sinks:
            fold = shown.get(sink.view)
            version = told.get(sink.topic, "") if fold is None else fold.version
            self._versions[sink.name] = version
            final = self.views[sink.view].emit == "final"
            entry = SinkEntry(sink.name, sink.view, version, sink.topic, sink.mode, final)
            found.append((entry, None if fold is None else fold.table))
        return found

    def wait(self, sinks: Iterable[str]) -> None:
        """Note which sinks rows wait for in the store: they are told when they are next due."""
        self._waiting = set(sinks)

    def of_turn(self, folds: Iterable[Fold], before: Clocks, after: Clocks) -> list[Emission]:
        """Return what a turn that takes clocks from `before` to `after` has to tell."""
        found = []
        for table, streams in streams_by_table(folds).items():
            for sink in self.sinks:
                if (sink.view, self._versions.get(sink.name)) == (table.view, table.version):
                    watermarks = (watermark_of(before, streams), watermark_of(after, streams))
                    found.append(self._emission(sink, table, *watermarks))
        return found

    def of_swap(self, folds: Iterable[Fold], older: Iterable[Table], clocks: Clocks) -> list[Swap]:
        """Return what sinks have to be told when these folds take the place of older versions.

        There may be several of one view: the one that a sink was told of, and others that failed.
        """
        before = {(table.view, table.version): table for table in older}
        swaps = []
        for table, streams in streams_by_table(folds).items():
            watermark_us = watermark_of(clocks, streams)
            for sink in self.sinks:
                version = self._versions.get(sink.name, "")
                if sink.view == table.view and version != table.version:
                    emission = self._emission(sink, table, watermark_us, watermark_us)
                    swaps.append(Swap(before.get((table.view, version)), emission))
        return swaps

    def swapped(self, swaps: Sequence[Swap]) -> None:
        """Go on with the new versions, once they are swapped in."""
        for swap in swaps:
            self._versions[swap.emission.sink] = swap.emission.table.version
            self._waiting.discard(swap.emission.sink)

    def note_emitted(self, emissions: Iterable[Emission]) -> None:
        """Note what a committed turn has told."""
        for emission in emissions:
            if emission.when is When.WITH_KEPT:
                self._told_us[emission.sink] = self.wall()
                self._waiting.discard(emission.sink)
            elif emission.when is When.LATER:
                self._waiting.add(emission.sink)

    def due_in_us(self, folds: Iterable[Fold]) -> int:
        """Return when a sink that is told of these versions has to be told of rows that wait."""
        versions = {(fold.name, fold.version) for fold in folds}
        return min(
            (
                self._due_in_us(sink)
                for sink in self.sinks
                if (sink.view, self._versions.get(sink.name)) in versions
                and sink.name in self._waiting
            ),
            default=NEVER_US,
        )

    def _emission(self, sink: Sink, table: Table, before_us: int, after_us: int) -> Emission:
        view = self.views[sink.view]
        when = When.WITH_KEPT if sink.name in self._waiting else When.NOW
        if view.emit == "every":
            when = When.LATER if self._due_in_us(sink) else When.WITH_KEPT
        return Emission(
            sink.name,
            sink.topic,
            sink.mode,
            table,
            before_us,
            after_us,
            final=view.emit == "final",
            when=when,
        )

    def _due_in_us(self, sink: Sink) -> int:
        told_us = self._told_us.get(sink.name)
        if told_us is None or self.ending:
            return 0
        return max(0, told_us + self.views[sink.view].emit_every_us - self.wall())
