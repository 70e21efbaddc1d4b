"""A member's part in a consumer group of Kafka's.

librdkafka joins, shows signs of life and hears of changes in threads of its own. A `poll` goes
through these steps until it has records or its time is over:

1. Serve: hear what happened. Partitions that move elsewhere are given up here, after `on_revoke`;
   those that were lost are forgotten; those that are new are noted.
2. Place what is new (placing.py).
3. Take, from each partition its share (intake.py).

A `commit` is one request with which Kafka checks that we are still the member that we were; with
output it is one transaction that holds the offsets, too (transactions.py). Kafka checks the member
and not the partitions, so what we lost is remembered here, until a commit was refused for it.

A topic that was made anew under a member is noticed after CACHE_S, and the group begins anew there:
Kafka has forgotten what it had committed.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace import faults
from headrace.consume.group_refusals import (
    check_group_position,
    instance_taken,
    partitions_lost,
)
from headrace.consume.groups import MemberSettings, Polled, Revoked
from headrace.consume.kafka.beside import call_beside
from headrace.consume.kafka.commits import Commits
from headrace.consume.kafka.intake import Intake
from headrace.consume.kafka.placing import Placing
from headrace.consume.lifetime import Lifetime
from headrace.consume.progress import Progress
from headrace.errors import UsageError
from headrace.log.base import Append, Partition
from headrace.log.kafka.client import LOGGER, LOOK_S, served
from headrace.log.kafka.inside import Inside
from headrace.log.kafka.reader import LOST, offset_of, to_arrow
from headrace.log.kafka.topics import CACHE_S

__all__ = ["KafkaMembership"]

# Taken from librdkafka at once; a slice of records of the largest size is still bearable.
CONSUMED_RECORDS = 100

# Our instance id is another's now; it is the one error that ends a consumer.
_OUT = {KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL}
# librdkafka goes on by itself.
_PASSING = {
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.REBALANCE_IN_PROGRESS,
}


class KafkaMembership:
    """A `Membership`."""

    def __init__(
        self,
        inside: Inside,
        *,
        group: str,
        topics: Sequence[str],
        settings: MemberSettings,
        on_revoke: Revoked | None,
    ) -> None:
        self._cluster = inside.cluster
        self._topics = inside.topics
        self._offsets = inside.offsets
        self._group = group
        self._settings = settings
        self._on_revoke = on_revoke
        self.life = Lifetime(made="joined", again="join the group")
        self.owned: set[Partition] = set()
        self.progress = Progress()
        self._id = ""
        self._intake = Intake()
        self._gone: dict[Partition, int] = {}  # positions that the log does not have
        self._raised: BaseException | None = None  # by what ran within a callback of librdkafka's
        self._called_back = self._is_in_trouble = self._fenced = False
        self._topic_ids = {topic: self._topics.find(topic).id for topic in topics}
        self._followed_at = time.monotonic()
        self._consumer = self._subscribe(topics)
        self._commits = Commits(
            inside,
            self._consumer,
            who=self,
            check_member=self._check_member,
            is_called_back=lambda: self._called_back,
        )
        self._placing = Placing(
            inside,
            self._consumer,
            group=group,
            latest=settings.start == "latest",
            commit=self._commits.try_to_store,
        )

    def _subscribe(self, topics: Sequence[str]) -> Consumer:
        own = {
            "group.id": self._topics.kafka_name(self._group),
            "session.timeout.ms": str(self._settings.session_timeout_ms),
            "max.poll.interval.ms": str(self._settings.max_poll_ms),
        }
        if self._settings.instance is not None:
            own["group.instance.id"] = self._settings.instance
        consumer = self._cluster.member(own, self._note_trouble)
        with self._errors("join"):
            consumer.subscribe(
                [self._topics.kafka_name(topic) for topic in dict.fromkeys(topics)],
                on_assign=self._take_over,
                on_revoke=self._give_up,
                on_lost=self._lose,
            )
        return consumer

    @property
    def id(self) -> str:
        """Which member of the group this is, once it has joined; another one after it did anew."""
        return self._id

    def __str__(self) -> str:
        return f"group {self._group!r}, member {self._id or 'that has not joined yet'}"

    def check_instance(self) -> None:
        """Refuse to go on when another process joined with our instance id. MemberFenced."""
        if self._fenced:
            raise instance_taken(self, self._settings.instance)

    def begin_anew(self) -> None:
        """Go on, at the next poll, where the group has committed to."""
        with suppress(KafkaException):  # whatever became of it, what is committed decides
            self._commits.settle()
        self._take_out(self.progress.positions)

    def commit(self, offsets: Mapping[Partition, int], appends: Sequence[Append]) -> None:
        """Store offsets and appends, all of them or nothing. MemberFenced: nothing was."""
        self._check_member()
        faults.reach("group_before_append")
        self._store(offsets, appends)
        faults.reach("group_after_append")

    def close(self) -> None:
        """Leave the group; without an instance id our partitions are free at once."""
        if not self.life.end():
            return
        # It waits for a commit that is not answered, and for the coordinator to take note.
        left = call_beside(self._consumer.close, f"end of {self}")
        with suppress(TimeoutError, KafkaException):  # our session ends by itself
            left.result(self._cluster.timeout_s)

    def _errors(self, what: str, *, raw: Iterable[int] = ()) -> Any:
        return self._cluster.errors(f"{what} as {self}", raw=set(raw))

    # The steps of a poll.

    def poll(self, timeout_s: float, max_records: int) -> list[Polled]:
        """Return the next records of our partitions, nothing after `timeout_s` without any."""
        deadline = time.monotonic() + timeout_s
        wait_s = 0.0
        while True:
            self._serve(wait_s)
            self._follow_topics()
            self._place()
            polled = self._take(max_records)
            if polled:
                return polled
            self._check_contact()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return []
            wait_s = min(left_s, LOOK_S)

    def _check_contact(self) -> None:
        """Raise what keeps our client from its work, if it says so. AccessDenied, Unreachable."""
        if self._is_in_trouble:
            self._cluster.check_contact(self._consumer, f"poll as {self}")
            self._is_in_trouble = False

    def _note_trouble(self) -> None:
        self._is_in_trouble = True

    def _serve(self, wait_s: float) -> None:
        """Take in what has come, and hear what happened; the first is waited for."""
        try:
            with self._errors("poll", raw=_OUT):
                first = served(lambda: self._consumer.poll(wait_s))
                messages = [] if first is None else [first]
                while messages:
                    for message in messages:
                        self._take_in(message)
                    messages = [] if self._intake.is_full else served(self._consume)
        except KafkaException as error:  # the one kind that `raw` passes on
            self._fenced = True
            raise instance_taken(self, self._settings.instance) from error
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        # None while it joins. Another one: Kafka took us for dead, whether it told us so or not.
        id = self._consumer.memberid() or ""
        if id != self._id:
            self.progress.lost |= self.progress.moved
            self._id = id

    def _consume(self) -> list[Message]:
        return self._consumer.consume(CONSUMED_RECORDS, 0)

    def _take_in(self, message: Message) -> None:
        error = message.error()
        topic, number = message.topic(), message.partition()
        place = None
        if topic is not None and number is not None:
            place = self._topics.place(TopicPartition(topic, number))
        if error is None:
            if place in self.progress.positions:
                self._intake.add(place, message)
        elif error.code() == KafkaError._PARTITION_EOF:
            if place in self.progress.positions:
                self._intake.note_end(place, offset_of(message))
        elif error.code() in LOST:
            if place in self.progress.positions:
                self._gone[place] = self.progress.positions[place]
                self._take_out([place])
        elif error.code() in _PASSING:
            LOGGER.warning("%s: %s", self, error.str())
        elif error.code() == KafkaError.INVALID_SESSION_TIMEOUT:
            raise UsageError(
                f"{self}: {self._cluster} refuses a session_timeout_ms of "
                f"{self._settings.session_timeout_ms}. Choose one that the brokers' "
                f"`group.min.session.timeout.ms` and `group.max.session.timeout.ms` allow."
            )
        else:
            raise KafkaException(error)

    def _follow_topics(self) -> None:
        """Begin anew with topics that were made anew. TopicNotFound."""
        if time.monotonic() - self._followed_at < CACHE_S:
            return
        for topic, known in self._topic_ids.items():
            found = self._topics.find(topic).id
            if found != known:
                LOGGER.warning("%s: topic %s was made anew, the group begins anew", self, topic)
                self._topic_ids[topic] = found
                anew = {place for place in self.owned if place.topic == topic}
                self.progress.lose(anew)
                self._gone = {at: each for at, each in self._gone.items() if at not in anew}
                self._take_out(anew)
        self._followed_at = time.monotonic()

    def _place(self) -> None:
        if self._gone:
            extents = self._offsets.extents(self._gone)
            for place, position in self._gone.items():
                check_group_position(self._group, place, position, extents[place])
            self._gone.clear()
        new = self.owned - self.progress.positions.keys()
        if not new:
            return
        found = self._placing.positions(new)
        self.progress.begin(found)
        with self._errors("begin to read"):
            self._consumer.incremental_assign(
                [self._topics.kafka_place(place, offset) for place, offset in found.items()]
            )

    def _take(self, max_records: int) -> list[Polled]:
        polled = []
        for place, messages, next_offset in self._intake.take(max_records):
            self.progress.move(place, next_offset, polled=bool(messages))
            if messages:
                batch = to_arrow(messages, any_time=self._cluster.believes_producers)
                polled.append(Polled(place, batch))
        return polled

    # What librdkafka calls within a poll. It makes nonsense of what is raised there.

    def _take_over(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        # Nothing is read before we say where; of itself librdkafka would do so now.
        self._within_callback(lambda: self._consumer.incremental_assign([]))
        self.owned |= {self._topics.place(each) for each in partitions}

    def _give_up(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        places = sorted(self._topics.place(each) for each in partitions)
        # librdkafka calls this, and not `_lose`, when it was about to and our time passed then.
        is_lost = not self._id or self._consumer.memberid() != self._id
        if self._on_revoke is not None and not self.life.is_over and not is_lost:
            on_revoke = self._on_revoke
            self._within_callback(lambda: on_revoke(places))
        self._let_go(places)

    def _lose(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._let_go(self._topics.place(each) for each in partitions)

    def _let_go(self, places: Iterable[Partition]) -> None:
        places = set(places)
        self.progress.lose(places)
        self.owned -= places
        for place in places:
            self._gone.pop(place, None)
        self._within_callback(lambda: self._take_out(places))

    def _within_callback(self, call: Callable[[], object]) -> None:
        self._called_back = True
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised by the poll that it is within
            self._raised = self._raised or error
        finally:
            self._called_back = False

    def _take_out(self, places: Iterable[Partition]) -> None:
        """Stop reading partitions; those that are ours are placed anew."""
        places = self.progress.positions.keys() & set(places)
        with self._errors("stop reading"):
            self._consumer.incremental_unassign([self._topics.kafka_place(each) for each in places])
        self._intake.drop(places)
        self.progress.stop(places)

    # Committing.

    def _check_member(self) -> None:
        """Refuse to commit as a member that we no longer are. MemberFenced."""
        if self.progress.lost or (self._consumer.memberid() or "") != self._id:
            raise partitions_lost(self, self.progress.lost | self.progress.moved)

    def _store(self, offsets: Mapping[Partition, int], appends: Sequence[Append]) -> None:
        try:
            self._commits.store(offsets, appends)
        except KafkaException as error:  # of FENCED
            if error.args[0].code() == KafkaError.FENCED_INSTANCE_ID:
                self._fenced = True
                raise instance_taken(self, self._settings.instance) from error
            raise partitions_lost(self, self.progress.moved) from error
