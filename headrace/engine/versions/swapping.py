"""Which units belong together when one of them is swapped in: questions about units, no deeds.

A unit is swapped in when it stands where the main one stands. It replaces older versions of its
views, and with a new version of a stream come the views over it, which must be built by then.
`wanted` are the names and versions of the views that the project defines now.
"""

from collections.abc import Collection, Iterable, Mapping

from headrace.engine.unit import Unit
from headrace.ledger.entries import MAIN, StreamPartition
from headrace.plan.stages import Fold
from headrace.plan.tables import Table

__all__ = [
    "built_along",
    "is_level",
    "merge_into_main",
    "replaced_by",
    "shown_with",
    "stays_apart",
    "tables_seen",
]

Units = Mapping[str, Unit]
Wanted = Collection[tuple[str, str]]


def stays_apart(unit: Unit, wanted: Wanted) -> bool:
    """Whether a unit goes on by itself, level or not.

    It failed or is paused; or it has to search for many records that fail; or its version is an old
    one that was set aside, which goes when its successor comes.
    """
    brings_stream = any(source.owned for source in unit.streams.values())
    return (
        unit.state.stands_still
        or (unit.failing and not brings_stream)
        or any((fold.name, fold.version) not in wanted for fold in unit.folds)
    )


def replaced_by(unit: Unit, units: Units) -> list[Unit]:
    """Return the units all of whose views a unit brings anew."""
    names = {fold.name for fold in unit.folds}
    return [
        other
        for other in units.values()
        if other is not unit
        and other.name != MAIN
        and other.folds
        and all(fold.name in names for fold in other.folds)
        and not any(source.owned for source in other.streams.values())
    ]


def built_along(unit: Unit, units: Units, wanted: Wanted) -> list[Unit]:
    """Return the units that build views over a stream that a unit brings.

    Readers see them when it is swapped in, so they have to be built by then; one that failed or is
    paused, or that searches for many records that fail, is seen as it stands.
    """
    brought = {source.owner for source in unit.streams.values() if source.owned}
    return [
        other
        for other in units.values()
        if other is not unit
        and not other.state.stands_still
        and not other.failing
        and any(
            (fold.name, fold.version) in wanted and other.streams[fold.stream.name].owner in brought
            for fold in other.folds
        )
    ]


def is_level(
    unit: Unit, main: Unit, along: Iterable[Unit], ends: Mapping[StreamPartition, int]
) -> bool:
    """Whether a unit stands where the main one does, or at the end where that has nothing.

    So must those that are built along with it. `ends` are how far the unit may read.
    """
    if unit.time_offset != main.time_offset:
        return False
    for other in along:
        if other.time_offset != unit.time_offset or any(
            place.offset != unit.progress[key].offset for key, place in other.progress.items()
        ):
            return False
    for name, source in unit.streams.items():
        held = main.streams.get(name)
        if not source.owned and (held is None or held.version != source.version):
            return False  # its stream's new version has to be swapped in first
    for key, place in unit.progress.items():
        topic = unit.streams[key.stream].stream.topic
        follows = main.topics().get(key.stream) == topic
        if place.offset < ends[key] or (follows and place.offset != ends[key]):
            return False
    return True


def shown_with(unit: Unit, units: Units, wanted: Wanted) -> list[Fold]:
    """Return the folds whose tables get their names when a unit is swapped in.

    Views that were set aside while their stream's new version was built are among them: what the
    old version said of them is gone with it.
    """
    brought = {source.owner for source in unit.streams.values() if source.owned}
    found: list[Fold] = []
    for other in units.values():
        over = {f.name for f in other.folds if other.streams[f.stream.name].owner in brought}
        found += [
            fold
            for fold in other.folds
            if (fold.name, fold.version) in wanted and (other is unit or fold.name in over)
        ]
    return found


def tables_seen(units: Iterable[Unit], versions: Mapping[str, str]) -> dict[str, Table]:
    """Return the tables that readers see, by view, given the versions that they see.

    A view that was set aside is seen as it stands; one that is built is not yet.
    """
    return {
        fold.name: fold.table
        for unit in units
        for fold in unit.folds
        if versions.get(fold.name) == fold.version
    }


def merge_into_main(unit: Unit, main: Unit) -> None:
    """Give the main unit what one brings that is swapped in: its views, streams and positions."""
    # New dictionaries instead of changed ones: other units' threads read these.
    names = {fold.name for fold in unit.folds}
    brought = {name for name, source in unit.streams.items() if source.owned}
    names |= {fold.name for fold in main.folds if fold.stream.name in brought}
    main.folds = [fold for fold in main.folds if fold.name not in names] + unit.folds
    main.streams = main.streams | {name: unit.streams[name] for name in brought}
    progress = {k: p for k, p in main.progress.items() if k.stream not in brought}
    main.progress = progress | unit.progress
    main.added = {key for key in main.added if key.stream not in unit.streams}
    # As the store does: with a position goes what was remembered there, be it nothing.
    kept_state = {op: runs for op, runs in main.manifests.items() if op.name not in unit.streams}
    main.manifests = kept_state | unit.manifests
