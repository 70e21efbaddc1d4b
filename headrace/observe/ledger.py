"""Compare what the ledger says of a unit with what a replay gives: positions, counters, W."""

from collections.abc import Iterator, Mapping

from headrace.engine.turn.ranges import check_position
from headrace.errors import PositionLost
from headrace.ledger.definitions import stream_of
from headrace.ledger.entries import Counters, Owner, Progress, StreamPartition
from headrace.log.base import Log, Partition
from headrace.observe.replaying import Position
from headrace.wording import counted

__all__ = [
    "check_nothing_went",
    "check_records_are_there",
    "compare_counters",
    "compare_progress",
    "compare_watermarks",
]


def check_records_are_there(unit: Position, log: Log, counters: Mapping[Owner, Counters]) -> None:
    """Refuse to recount what retention has removed. PositionLost."""
    for holding in unit.holdings:
        if holding.kind != "stream":
            continue
        topic = stream_of(holding, holding.name).topic
        extents = log.extents(topic)
        left = 0
        for key, place in unit.progress.items():
            if key.stream == holding.name:
                partition = Partition(topic, key.partition)
                check_position(partition, place.offset, extents)
                left += place.offset - extents[partition].first_offset
        gone = counters.get(holding.owner, {}).get("read", 0) - left
        removed = any(extent.first_offset > 0 for extent in extents.values())
        # Else the counter is wrong, and comparing it says so.
        if gone > 0 and (removed or log.topic(topic).settings.compact):
            first = {place.number: extent.first_offset for place, extent in extents.items()}
            raise PositionLost(
                f"{topic}: the log no longer has {counted(gone, 'record')} that stream "
                f"{holding.name} has read: it begins at {first} by partition, so the tables cannot "
                f"be recomputed from it. Audit before retention removes records, or move the store "
                f"away and build it from what is left."
            )


def check_nothing_went(
    unit: Position,
    log: Log,
    recorded: Mapping[Owner, Counters],
    replayed: Mapping[Owner, Counters],
) -> None:
    """Tell what a log without dense offsets does not tell before it is read. PositionLost."""
    for holding in unit.holdings:
        name = "read" if holding.kind == "stream" else "seen"
        before, now = (
            counters.get(holding.owner, {}).get(name, 0) for counters in (recorded, replayed)
        )
        for topic in (stream_of(holding, stream).topic for stream in holding.inputs):
            compacted = log.topic(topic).settings.compact
            removed = any(extent.first_offset > 0 for extent in log.extents(topic).values())
            if now < before and (compacted or removed):
                by = "Compaction" if compacted else "Retention"
                raise PositionLost(
                    f"{topic}: the log no longer has {counted(before - now, 'record')} that "
                    f"{holding.kind} {holding.name} has {name}, so the tables cannot be recomputed "
                    f"from it. {by} is the reason; move the store away and build it from what is "
                    f"left, to audit that."
                )


def compare_progress(unit: Position, replayed: Mapping[StreamPartition, Progress]) -> Iterator[str]:
    """Yield where a unit stands elsewhere, or with another clock, than the log gives."""
    for key, place in unit.progress.items():
        if place != replayed.get(key):
            yield (
                f"unit {unit.unit}, {key.stream}/{key.partition}: the ledger has {place}, "
                f"the log gives {replayed.get(key)}"
            )


def compare_counters(
    unit: Position, recorded: Mapping[Owner, Counters], replayed: Mapping[Owner, Counters]
) -> Iterator[str]:
    """Yield which counters are not what the log gives."""
    for owner in (holding.owner for holding in unit.holdings):
        ours, theirs = recorded.get(owner, {}), replayed.get(owner, {})
        for name in sorted({*ours, *theirs}):
            if ours.get(name, 0) != theirs.get(name, 0):
                yield (
                    f"{owner.kind} {owner.name}: {name} is {ours.get(name, 0)}, "
                    f"the log gives {theirs.get(name, 0)}"
                )


def compare_watermarks(
    unit: Position, recorded: Mapping[Owner, int], replayed: Mapping[Owner, int]
) -> Iterator[str]:
    """Yield which views have another W than the log gives."""
    for owner in (holding.owner for holding in unit.holdings if holding.kind == "view"):
        if recorded[owner] != replayed.get(owner):
            yield (
                f"view {owner.name}: its watermark is {recorded[owner]}, the log gives "
                f"{replayed.get(owner)}"
            )
