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
    "compacted_tables",
    "compare_counters",
    "compare_progress",
    "compare_watermarks",
]


def compacted_tables(unit: Position, log: Log) -> frozenset[str]:
    """Return the tables of a unit whose topics are compacted.

    What compaction took cannot be counted again; the rows that are shown can be made again.
    """
    streams = [stream_of(held, held.name) for held in unit.holdings if held.kind == "stream"]
    return frozenset(
        each.name for each in streams if each.primary_key and log.topic(each.topic).settings.compact
    )


def check_records_are_there(unit: Position, log: Log, counters: Mapping[Owner, Counters]) -> None:
    """Refuse to recount what retention has removed. PositionLost."""
    shown_only = compacted_tables(unit, log)
    for holding in unit.holdings:
        if holding.kind != "stream" or holding.name in shown_only:
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
    shown_only = compacted_tables(unit, log)
    for holding in unit.holdings:
        if holding.name in shown_only:
            continue
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


def compare_progress(
    unit: Position,
    replayed: Mapping[StreamPartition, Progress],
    shown_only: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Yield where a unit stands elsewhere, or with another clock, than the log gives.

    The clocks of `shown_only` may have been moved by records that are gone.
    """
    for key, place in unit.progress.items():
        found = replayed.get(key)
        if key.stream in shown_only and found is not None and found.offset == place.offset:
            continue
        if place != found:
            yield (
                f"unit {unit.unit}, {key.stream}/{key.partition}: the ledger has {place}, "
                f"the log gives {replayed.get(key)}"
            )


def compare_counters(
    unit: Position,
    recorded: Mapping[Owner, Counters],
    replayed: Mapping[Owner, Counters],
    shown_only: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Yield which counters are not what the log gives, but for those of `shown_only`."""
    for owner in (held.owner for held in unit.holdings if held.name not in shown_only):
        ours, theirs = recorded.get(owner, {}), replayed.get(owner, {})
        for name in sorted({*ours, *theirs}):
            if ours.get(name, 0) != theirs.get(name, 0):
                yield (
                    f"{owner.kind} {owner.name}: {name} is {ours.get(name, 0)}, "
                    f"the log gives {theirs.get(name, 0)}"
                )


def compare_watermarks(
    unit: Position,
    recorded: Mapping[Owner, int],
    replayed: Mapping[Owner, int],
    shown_only: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Yield which views have another W than the log gives, but for `shown_only`."""
    for owner in (holding.owner for holding in unit.holdings if holding.kind == "view"):
        if owner.name in shown_only:
            continue
        if recorded[owner] != replayed.get(owner):
            yield (
                f"view {owner.name}: its watermark is {recorded[owner]}, the log gives "
                f"{replayed.get(owner)}"
            )
