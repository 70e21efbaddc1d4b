"""What the ledger has read and the log no longer holds: topics that are gone or were made anew."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from headrace.engine.turn.ranges import check_position
from headrace.errors import PositionLost
from headrace.ledger.entries import Holding, Progress, StreamPartition
from headrace.log.base import Extent, Partition

__all__ = ["TopicsRead", "gone_text"]


def gone_text(topic: str, records: int) -> str:
    """Return what to say of a topic that is no longer there, although so many records were read."""
    if records == 0:
        return f"topic {topic} is gone; the engine creates it again when it starts"
    return (
        f"topic {topic} is gone (records read from it: {records:,}). Without them the tables "
        f"cannot be continued, audited or built again. Restore its folder from a copy of the log, "
        f"such as `cp -r COPY/{topic} .headrace/log/`; on Kafka, restore the topic."
    )


@dataclass
class TopicsRead:
    """How far each topic was read, by any stream of any unit."""

    offsets: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(
        self, held: Holding, topics: Mapping[str, str], progress: Mapping[StreamPartition, Progress]
    ) -> None:
        """Take note of what a version has read; `topics` are those of its streams."""
        for stream in held.inputs:
            known = self.offsets.setdefault(topics[stream], {})
            for key, place in progress.items():
                if key.stream == stream:
                    known[key.partition] = max(place.offset, known.get(key.partition, 0))

    def warnings(self, extents: Mapping[str, Mapping[Partition, Extent]]) -> Iterator[str]:
        """Yield a sentence for each topic that has not what was read; `extents` has those known."""
        for topic, offsets in sorted(self.offsets.items()):
            if topic not in extents:
                yield gone_text(topic, sum(offsets.values()))
            else:
                yield from _lost(topic, offsets, extents[topic])


def _lost(
    topic: str, offsets: Mapping[int, int], extents: Mapping[Partition, Extent]
) -> Iterable[str]:
    for number, offset in sorted(offsets.items()):
        try:
            check_position(Partition(topic, number), offset, extents)
        except PositionLost as error:
            return [str(error)]
    return []
