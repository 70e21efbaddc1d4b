"""What groups have committed: records of the topic `headrace.groups`, the newest of a key counts.

One partition, compacted. The key is JSON, [group, topic, partition]; the value is JSON too,
{"offset": <the next one to read>, "topic_id": <of the topic that was read>}, or null when the
group was deleted.

Promises:
- Offsets and output are stored together, by one transaction of the log.
- A topic that was deleted and made anew does not inherit the offsets of the old one.
- `catch_up` sees every commit that returned before it was called, and all of one that a dead
  process had decided.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from headrace.errors import TopicExists, TopicNotFound
from headrace.log.base import Append, Partition, Range, Topic, TopicSettings
from headrace.log.embedded.inside import Inside
from headrace.log.embedded.topics import create_topic_folder
from headrace.log.names import GROUPS_TOPIC
from headrace.log.records import records

__all__ = ["Committed", "Offsets"]

_PLACE = Partition(GROUPS_TOPIC, 0)
_SETTINGS = TopicSettings(compact=True)


class Committed(NamedTuple):
    """The next offset that a group reads, in the topic of this id."""

    offset: int
    topic_id: str


class Offsets:
    """The committed offsets of all groups of a log. Safe for several threads."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._mutex = threading.Lock()
        self._topic_id = ""
        self._next = 0
        self._newest: dict[str, dict[Partition, Committed]] = {}

    def groups(self) -> list[str]:
        """Return the names of all groups that have committed something, as last caught up with."""
        with self._mutex:
            return sorted(self._newest)

    def of(self, group: str) -> dict[Partition, Committed]:
        """Return what a group has committed, as last caught up with; also in topics of the past."""
        with self._mutex:
            return dict(self._newest.get(group, {}))

    def catch_up(self) -> None:
        """Read what was committed since."""
        with self._mutex:
            try:
                topic_id = self._inside.stored(GROUPS_TOPIC).id
            except TopicNotFound:
                return  # nobody has committed anything
            first, end = self._inside.caught_up_extent(_PLACE)
            if topic_id != self._topic_id or self._next < first:
                # What is gone may have been the end of a key that we still know.
                self._topic_id, self._next = topic_id, first
                self._newest.clear()
            for batch in self._inside.log.read(Range(_PLACE, self._next, end)):
                # Of a key that stands here twice the last counts, and only that one is decoded.
                keys, values = batch.column("key"), batch.column("value")
                pairs = dict(zip(keys.to_pylist(), values.to_pylist(), strict=True))
                for key, value in pairs.items():
                    self._note(key, value)
            self._next = end

    def _note(self, key: bytes, value: bytes | None) -> None:
        group, topic, number = json.loads(key)
        offsets = self._newest.setdefault(group, {})
        if value is None:
            offsets.pop(Partition(topic, number), None)
            if not offsets:
                del self._newest[group]
        else:
            content = json.loads(value)
            offsets[Partition(topic, number)] = Committed(content["offset"], content["topic_id"])

    def store(
        self,
        group: str,
        offsets: Mapping[Partition, Committed | None],
        appends: Sequence[Append] = (),
    ) -> None:
        """Commit offsets, None to forget one, and append the output: all of it or nothing."""
        if not offsets:
            self._inside.append(appends)
            return
        self._make_topic()
        keys = [json.dumps([group, place.topic, place.number]) for place in offsets]
        values = [None if each is None else json.dumps(each._asdict()) for each in offsets.values()]
        self._inside.append([*appends, Append(GROUPS_TOPIC, records(values, keys=keys), 0)])

    def _make_topic(self) -> None:
        with suppress(TopicNotFound):
            self._inside.stored(GROUPS_TOPIC)
            return
        with suppress(TopicExists):  # another process was faster
            topic = Topic(GROUPS_TOPIC, 1, _SETTINGS)
            create_topic_folder(self._inside.path, topic, sync=self._inside.sync)
