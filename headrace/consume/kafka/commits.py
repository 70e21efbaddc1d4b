"""How a member of a group stores what it has done: offsets alone, or together with its output.

Promises:
- Kafka checks that we are still the member that polled: with every request goes its id and the
  generation of the group.
- While the group is being shared out anew, or its coordinator moves, the same is asked again.
- Whoever waits does so for `timeout_s`, or for as long as a transaction may take.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headrace.consume.kafka.beside import call_beside
from headrace.errors import MemberFenced
from headrace.log.base import Append, Partition
from headrace.log.kafka.client import LOOK_AGAIN_S, check_each
from headrace.log.kafka.inside import Inside
from headrace.log.kafka.transactions import GroupOffsets

__all__ = ["FENCED", "Commits"]

#: What Kafka, or librdkafka, answers to one who is no longer a member.
FENCED = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._STATE,
    KafkaError._ASSIGNMENT_LOST,
}
#: How long a member that is no longer of the group's generation may take to learn the new one.
_REJOIN_S = 5.0
_AGAIN = {
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
}


class Commits:
    """Commits of one member, `who`; `check_member` raises MemberFenced when it is no longer that.

    librdkafka would not: once it was told that it is out, it commits in the name of nobody.
    """

    def __init__(
        self,
        inside: Inside,
        consumer: Consumer,
        *,
        who: object,
        check_member: Callable[[], None],
        is_called_back: Callable[[], bool],
    ) -> None:
        self._inside = inside
        self._cluster = inside.cluster
        self._consumer = consumer
        self._who = who
        self._check_member = check_member
        self._is_called_back = is_called_back
        self._unanswered: Future[list[TopicPartition]] | None = None

    def store(self, offsets: Mapping[Partition, int], appends: Sequence[Append]) -> None:
        """Store all of it or nothing. MemberFenced. KafkaException: one of FENCED.

        Unreachable, LogError: all of it is stored, will be, or nothing.
        """
        what = f"commit as {self._who}"
        deadline = time.monotonic() + self._cluster.timeout_s
        # The group may be shared out anew at this moment, and librdkafka has yet to learn its new
        # generation. Partitions stay ours until a poll gives them up; every try checks that.
        rejoined = 0.0 if appends else time.monotonic() + _REJOIN_S
        while True:
            try:
                with self._cluster.errors(what, raw=FENCED | _AGAIN):
                    if appends:
                        self._inside.append_with(appends, self._group_offsets(offsets))
                    else:
                        self._commit(offsets)
                    return
            except KafkaException as error:  # the one kind that `raw` passes on
                code = error.args[0].code()
                if code in FENCED and not (
                    code == KafkaError.ILLEGAL_GENERATION and time.monotonic() < rejoined
                ):
                    raise
                if time.monotonic() > deadline:
                    raise self._cluster.translated(
                        error.args[0], f"commit as {self._who}"
                    ) from error
            time.sleep(LOOK_AGAIN_S)

    def try_to_store(self, offsets: Mapping[Partition, int]) -> bool:
        """Store offsets if that can be done now."""
        try:
            with self._cluster.errors(f"commit as {self._who}", raw=FENCED | _AGAIN):
                self._commit(offsets)
        except (KafkaException, MemberFenced):  # the group is being shared out anew
            return False
        return True

    def _positions(self, offsets: Mapping[Partition, int]) -> list[TopicPartition]:
        return [self._inside.topics.kafka_place(*each) for each in offsets.items()]

    def _group_offsets(self, offsets: Mapping[Partition, int]) -> GroupOffsets | None:
        if not offsets:
            return None
        member = self._consumer.consumer_group_metadata()
        self._check_member()  # after that, so `member` is who polled
        return GroupOffsets(self._positions(offsets), member)

    def _commit(self, offsets: Mapping[Partition, int]) -> None:
        self._check_member()
        positions = self._positions(offsets)

        def commit() -> list[TopicPartition]:
            return self._consumer.commit(offsets=positions, asynchronous=False) or []

        if self._is_called_back():
            # Within a callback of librdkafka's, for whose end other threads would wait.
            check_each(commit())
        else:
            self._unanswered = call_beside(commit, f"commit of {self._who}")
            check_each(self.settle())

    def settle(self) -> list[TopicPartition]:
        """Return the answer to a commit that was waited for in vain. Unreachable: there is none.

        Until there is, librdkafka does not change where it reads.
        """
        if self._unanswered is None:
            return []
        try:
            answer = self._unanswered.result(self._cluster.timeout_s)
        except TimeoutError:
            raise self._cluster.unreachable(f"commit as {self._who}") from None
        except BaseException:
            self._unanswered = None
            raise
        self._unanswered = None
        return answer
