"""Where units that are new begin to read: at the log's start, before any clock.

Where retention has removed records the start is later, and that is told: what is built then lacks
them.
"""

import logging
from collections.abc import Collection, Sequence

from headrace.engine.turn.planning import Planner
from headrace.ledger.entries import Holding, Progress, StreamPartition
from headrace.model.definitions import Project
from headrace.time.clocks import Clock
from headrace.wording import counted

__all__ = ["beginnings"]

logger = logging.getLogger("headrace.engine")


def beginnings(
    project: Project, planner: Planner, entered: Sequence[Holding], known: Collection[str]
) -> dict[str, dict[StreamPartition, Progress]]:
    """Return where the units of entered versions begin, except those that are known."""
    found: dict[str, dict[StreamPartition, Progress]] = {}
    gone: dict[str, int] = {}
    for holding in entered:
        if holding.unit in known:
            continue
        begin = found.setdefault(holding.unit, {})
        for stream in map(project.stream, holding.inputs):
            extents = planner.partitions(stream)
            gone[stream.topic] = sum(extent.first_offset for extent in extents.values())
            for partition, extent in extents.items():
                key = StreamPartition(stream.name, partition.number)
                begin[key] = Progress(extent.first_offset, Clock(delay_us=stream.delay_us))
    for topic, count in gone.items():
        if count:
            logger.warning(
                "%s: the log no longer has %s at its beginning, so what is built now is incomplete",
                topic,
                counted(count, "offset"),
            )
    return found
