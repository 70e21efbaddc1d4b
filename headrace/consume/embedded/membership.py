"""A member's part in a consumer group of the embedded log.

A `poll` goes through these steps until it has records or its time is over:

1. Look whether anything happened to the group. If so, in one step: remove the dead, join anew if we
   were taken for one of them, take what shall be ours and is free.
2. Give up what shall be others': `on_revoke`, then free it.
3. Place what is new: go on where the group has committed to, or at the start.
4. Fetch, from each partition its share.

A `commit` checks, appends and ends within one step of the coordinator: nobody can take over a
partition between the check and the append. Should we die on the way, the log's transaction decides.
"""

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from headrace import faults
from headrace.consume.embedded.coordinator import Coordinator, now_ms
from headrace.consume.embedded.group_rows import (
    GroupRows,
    MemberRow,
    Standing,
    facts_of,
    look_up,
    show_sign_of_life,
)
from headrace.consume.embedded.heartbeat import Heartbeat
from headrace.consume.embedded.offsets import Committed, Offsets
from headrace.consume.group_refusals import (
    check_group_position,
    instance_taken,
    partitions_lost,
)
from headrace.consume.groups import MemberSettings, Polled, Revoked
from headrace.consume.lifetime import Lifetime
from headrace.consume.polling import share_evenly, wait_for
from headrace.consume.progress import Progress
from headrace.errors import TopicNotFound
from headrace.log.base import Append, Partition, Range
from headrace.log.embedded.inside import Inside
from headrace.log.embedded.topics import StoredTopic

__all__ = ["EmbeddedMembership"]

# Two beats in a row may fail; and Kafka's default, where sessions are long.
BEATS_PER_SESSION = 3
MAX_BEAT_S = 3.0

logger = logging.getLogger("headrace.log")


class EmbeddedMembership:
    """A `Membership`."""

    def __init__(
        self,
        inside: Inside,
        coordinator: Coordinator,
        offsets: Offsets,
        *,
        group: str,
        topics: Sequence[str],
        settings: MemberSettings,
        on_revoke: Revoked | None,
    ) -> None:
        self._inside = inside
        self._coordinator = coordinator
        self._offsets = offsets
        self._group = group
        self._topics = list(dict.fromkeys(topics))
        self._settings = settings
        self._on_revoke = on_revoke
        self.life = Lifetime(made="joined", again="join the group")
        self.owned: set[Partition] = set()
        self.progress = Progress()
        self._standing: Standing | None = None
        self._topic_ids: dict[Partition, str] = {}
        self._polling = self._fenced = False
        self._turn = 0
        self._last_poll_ms = now_ms()
        with coordinator.step() as connection:
            rows = GroupRows(connection, group)
            self._id = self._enter(rows)
            rows.remove_dead()
            rows.retarget(self._find_topic)
        self._heartbeat = self._start_heartbeat()

    @property
    def id(self) -> str:
        """Which member of the group this is; another one after it joined anew."""
        return self._id

    def __str__(self) -> str:
        return f"group {self._group!r}, member {self._id}"

    def check_instance(self) -> None:
        """Refuse to go on when another process joined with our instance id. MemberFenced."""
        if self._fenced:
            raise instance_taken(self, self._settings.instance)

    def begin_anew(self) -> None:
        """Go on, at the next poll, where the group has committed to."""
        self.progress.stop(self.progress.positions)

    def poll(self, timeout_s: float, max_records: int) -> list[Polled]:
        """Return the next records of our partitions, nothing after `timeout_s` without any."""
        self._polling = True
        try:
            return wait_for(lambda: self._poll_once(max_records), timeout_s=timeout_s)
        finally:
            self._polling = False
            self._last_poll_ms = now_ms()

    def _poll_once(self, max_records: int) -> list[Polled]:
        if (failure := self._heartbeat.take_failure()) is not None:
            raise failure
        self._reconcile()
        self._place(self.owned - self.progress.positions.keys())
        return self._fetch(max_records)

    def commit(self, offsets: Mapping[Partition, int], appends: Sequence[Append]) -> None:
        """Store offsets and appends, all of them or nothing. MemberFenced: nothing was."""
        with self._coordinator.step() as connection:
            self._check_owned(GroupRows(connection, self._group))
            faults.reach("group_before_append")
            committed = {
                place: Committed(offset, self._topic_ids[place])
                for place, offset in offsets.items()
            }
            self._offsets.store(self._group, committed, appends)
            faults.reach("group_after_append")

    def _check_owned(self, rows: GroupRows) -> None:
        gone = self.progress.lost | (self.progress.moved - rows.owned(self._id))
        if gone or self._id not in {member.id for member in rows.members()}:
            raise partitions_lost(self, gone)

    def close(self) -> None:
        """Leave the group; without an instance id our partitions are free at once."""
        if not self.life.end():
            return
        self._heartbeat.stop()
        if self._settings.instance is None:
            self._leave(self._id)

    # Life.

    def _enter(self, rows: GroupRows) -> str:
        id = f"{self._settings.instance or 'member'}-{secrets.token_hex(8)}"
        timeout_ms = self._settings.session_timeout_ms
        rows.enter(MemberRow(id, self._settings.instance, self._topics, timeout_ms, now_ms()))
        return id

    def _start_heartbeat(self) -> Heartbeat:
        id, settings = self._id, self._settings

        def beat() -> bool:
            if not self._polling and now_ms() - self._last_poll_ms > settings.max_poll_ms:
                if settings.instance is None:
                    self._leave(id)
                return False
            with self._coordinator.step() as connection:
                return show_sign_of_life(connection, id)

        beats_s = settings.session_timeout_ms / 1000 / BEATS_PER_SESSION
        return Heartbeat(beat, interval_s=min(MAX_BEAT_S, beats_s), name=f"headrace {self}")

    def _leave(self, id: str) -> None:
        with self._coordinator.step() as connection:
            rows = GroupRows(connection, self._group)
            rows.remove([id])
            rows.retarget(self._find_topic)

    def _find_topic(self, name: str) -> StoredTopic | None:
        with suppress(TopicNotFound):
            return self._inside.stored(name)
        return None

    # The steps of a poll.

    def _reconcile(self) -> None:
        own_facts = {topic: facts_of(self._inside.stored(topic)) for topic in self._topics}
        with self._coordinator.look() as connection:
            standing = look_up(connection, self._group)
        if standing is not None and standing == self._standing and standing.knows(own_facts):
            return
        with self._coordinator.step() as connection:
            rows = GroupRows(connection, self._group)
            id = self._id
            if joins := not show_sign_of_life(connection, id):
                instance = self._settings.instance
                if instance is not None and instance in {m.instance for m in rows.members()}:
                    self._fenced = True
                    raise instance_taken(self, instance)
                id = self._enter(rows)
            standing = look_up(connection, self._group)
            if rows.remove_dead() or joins or standing is None or not standing.knows(own_facts):
                rows.retarget(self._find_topic)
            rows.take(id)
            owned, surplus = rows.owned(id), rows.surplus(id)
            standing = look_up(connection, self._group)
        if joins:
            logger.warning("%s: taken for dead, joins anew as %s", self, id)
            self._drop(list(self.progress.positions))
            self._heartbeat.stop()
            self._id = id
            self._heartbeat = self._start_heartbeat()
        anew = {
            place
            for place in self.progress.positions
            if own_facts[place.topic][0] != self._topic_ids[place]
        }
        self._drop(anew | (self.progress.positions.keys() - owned))
        self.owned = owned
        if surplus:
            self._give_up(surplus)
        else:
            self._standing = standing

    def _give_up(self, surplus: Sequence[Partition]) -> None:
        if self._on_revoke is not None:
            self._on_revoke(surplus)
        with self._coordinator.step() as connection:
            GroupRows(connection, self._group).give_up(self._id, surplus)
        self._drop(surplus)
        self.owned.difference_update(surplus)

    def _drop(self, places: Iterable[Partition]) -> None:
        places = set(places)
        self.progress.lose(places)
        self.progress.stop(places)

    def _place(self, places: set[Partition]) -> None:
        if not places:
            return
        if self._settings.start == "latest":
            self._begin_at_the_end({place.topic for place in places})
        else:
            self._offsets.catch_up()
        committed = self._offsets.of(self._group)
        for place in sorted(places):
            topic_id = self._inside.stored(place.topic).id
            found = committed.get(place)
            if found is None or found.topic_id != topic_id:
                found = Committed(self._inside.extent(place).first_offset, topic_id)
            self.progress.begin({place: found.offset})
            self._topic_ids[place] = found.topic_id

    def _begin_at_the_end(self, topics: Iterable[str]) -> None:
        """Commit the ends of topics that are new to the group, for all their partitions at once.

        So a partition without an offset is one that was added later, and is read from its start.
        """
        with self._coordinator.step():
            self._offsets.catch_up()
            known = {place.topic for place in self._offsets.of(self._group)}
            ends = {
                place: Committed(extent.end_offset, self._inside.stored(topic).id)
                for topic in sorted(topics)
                if topic not in known
                for place, extent in self._inside.log.extents(topic).items()
            }
            if ends:
                self._offsets.store(self._group, ends)
        self._offsets.catch_up()

    def _fetch(self, max_records: int) -> list[Polled]:
        unread: list[Range] = []
        for place in sorted(self.progress.positions):
            position = self.progress.positions[place]
            extent = self._inside.extent(place)
            check_group_position(self._group, place, position, extent)
            if position < extent.end_offset:
                unread.append(Range(place, position, extent.end_offset))
        polled: list[Polled] = []
        ranges = share_evenly(unread, max_records, turn=self._turn)
        for range in ranges:
            polled += [
                Polled(range.partition, batch)
                for batch in self._inside.log.read(range)
                if batch.num_rows
            ]
        # Only now, so that a read that fails leaves nothing half polled.
        self._turn += 1
        for place, _, end in ranges:
            self.progress.move(place, end, polled=True)
        return polled
