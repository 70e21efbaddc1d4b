"""Where a member begins to read partitions that it was assigned.

It goes on where the group has committed to. Where it has not, it begins at the first record, or
with `start="latest"` at the end, which is committed at once. That is decided for all partitions of
a topic together, by whoever owns partition 0: nobody else does meanwhile, since a partition has one
owner. So a partition without an offset, in a topic whose partition 0 has one, was added later, and
is read from its start; and who finds neither waits for the owner of partition 0.

Promises:
- Offsets of a transaction that is not decided yet are waited for.
- A position that is not in the log is PositionLost, never moved in silence.
Not promised: where a group begins whose members disagree about `start`.
"""

from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException

from headrace.consume.group_refusals import check_group_position
from headrace.log.base import Partition
from headrace.log.kafka.client import check_each
from headrace.log.kafka.inside import Inside

__all__ = ["Placing"]

#: How long a poll waits for offsets that the group has committed, before it looks again.
LOOK_FOR_OFFSETS_S = 1.0

_UNDECIDED = {
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
}


class Placing:
    """The positions of one member; `commit` stores offsets for its group, or says it cannot."""

    def __init__(
        self,
        inside: Inside,
        consumer: Consumer,
        *,
        group: str,
        latest: bool,
        commit: Callable[[Mapping[Partition, int]], bool],
    ) -> None:
        self._cluster = inside.cluster
        self._topics = inside.topics
        self._offsets = inside.offsets
        self._consumer = consumer
        self._group = group
        self._latest = latest
        self._commit = commit

    def positions(self, places: Iterable[Partition]) -> dict[Partition, int]:
        """Return where to read partitions from; those that are not decided yet are left out.

        PositionLost.
        """
        places = sorted(places)
        found = self._committed(places)
        if found is None:
            return {}
        missing = [place for place in places if place not in found]
        for topic in {place.topic for place in missing}:
            found |= self._start(topic, [place for place in missing if place.topic == topic])
        extents = self._offsets.extents(found)
        for place, offset in found.items():
            check_group_position(self._group, place, offset, extents[place])
        return found

    def _start(self, topic: str, missing: list[Partition]) -> dict[Partition, int]:
        """Return where to begin in partitions of a topic without an offset; see above."""
        known: dict[Partition, int] = {}
        if self._latest:
            first = Partition(topic, 0)
            if first in missing:
                return self._begin_at_the_end(topic)
            # In this order: who decided for the first one decided for all that were there.
            if not self._committed([first]) or (decided := self._committed(missing)) is None:
                return {}
            known = decided
        extents = self._offsets.extents(missing)
        return {place: known.get(place, extents[place].first_offset) for place in missing}

    def _begin_at_the_end(self, topic: str) -> dict[Partition, int]:
        """Commit the ends of all partitions of a topic that have no offset, and return them."""
        count = self._topics.find(topic, fresh=True).topic.partitions
        places = [Partition(topic, number) for number in range(count)]
        known = self._committed(places)
        if known is None:
            return {}
        ends = self._offsets.stable_ends(place for place in places if place not in known)
        return ends if self._commit(ends) else {}

    def _committed(self, places: Iterable[Partition]) -> dict[Partition, int] | None:
        """Return where the group has committed to; None: that is not decided yet."""
        asked = [self._topics.kafka_place(place) for place in places]
        what = f"find what group {self._group!r} has committed"
        try:
            with self._cluster.errors(what, raw=_UNDECIDED):
                answers = self._consumer.committed(asked, timeout=LOOK_FOR_OFFSETS_S)
                check_each(answers)
        except KafkaException:  # the one kind that `raw` passes on
            return None
        return {self._topics.place(each): each.offset for each in answers if each.offset >= 0}
