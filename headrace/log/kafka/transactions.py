"""Appending to Kafka in transactions: to several partitions, many batches, batches of producers.

An append takes these steps.

1. Begin; hand over the records and, for batches of producers, their entries (sequences.py).
2. Flush: all of it is stored, and nobody sees it. The offsets of a group, if there are any, too.
3. With producers: look at the entries that were written before ours. If one of the same producer
   is not decided yet, abort, settle with that one, and begin again. If the batch is there already,
   or its epoch is over, abort.
4. Commit.
5. Wait until readers see it: Kafka says "committed" before the markers that show it are written.

After a failure:
- in 1 to 3, or death there: Kafka aborts what was written, at the latest when its time is over
  (TRANSACTION_TIMEOUT_S). Until then it holds back what comes after it. Two can end it at once: a
  log with the same name, with its first append, and a batch of the same producer with a newer
  epoch. Whoever was ended so gets ProducerFenced, unless it may begin again.
- in 4, Unreachable: all is stored or nothing is. With a producer, appending again settles that.
- in 5, and death after 4: it is stored.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import uuid4

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headrace import faults
from headrace.errors import LogError, ProducerFenced
from headrace.log.base import Partition, Producer, Range
from headrace.log.kafka.client import (
    LOGGER,
    LONG_TRANSACTION_TIMEOUT_S,
    TRANSACTION_TIMEOUT_S,
    Cluster,
    served,
)
from headrace.log.kafka.delivery import Delivery, Share, flush, hand_over
from headrace.log.kafka.offsets import KafkaOffsets
from headrace.log.kafka.pool import MAX_CLIENTS, Client, ClientPool, end_client
from headrace.log.kafka.sequences import NOWHERE, PLACE, Claim, Rival, Sequences
from headrace.log.kafka.topics import PRODUCERS_TOPIC, Found, KafkaTopics

__all__ = ["GroupOffsets", "Together", "Transactions"]

#: An append above either has the long timeout; 30,000 records/s and 10 MB/s are a slow machine's.
LONG_RECORDS = 200_000
LONG_BYTES = 64 << 20
#: How often an append gives way to others with the same producer.
MAX_ATTEMPTS = 20

#: What Kafka answers to the offsets of a member that it does not know as such (any more), or yet.
GROUP_ERRORS = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
}
_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError._FATAL,  # one of these, most likely
}


class GroupOffsets(NamedTuple):
    """What a member of a group commits within a transaction, and who it is to Kafka."""

    positions: list[TopicPartition]
    member: object


class Together(NamedTuple):
    """What a transaction did: where its shares are or, when nothing was stored, why."""

    ranges: dict[Partition, list[Range]]
    stored_before: Share | None = None


class _Ended(Exception):
    """Somebody ended our transaction, and it may begin again."""


class _Attempt(NamedTuple):
    """How one transaction ended."""

    deliveries: list[Delivery]
    entries: Delivery
    rivals: list[Rival]
    committed: bool


class Transactions:
    """Clients with transactional ids, each lent to one append. Safe for several threads.

    Without a name each client has an id of its own. Those of a log with a name share one, which
    whoever uses it later takes away; so such a log makes one transaction at a time.
    """

    def __init__(
        self,
        cluster: Cluster,
        topics: KafkaTopics,
        offsets: KafkaOffsets,
        sequences: Sequences,
        *,
        prefix: str,
        name: str | None,
    ) -> None:
        self._cluster = cluster
        self._topics = topics
        self._offsets = offsets
        self._sequences = sequences
        self._prefix = prefix
        self._name = name
        most = MAX_CLIENTS if name is None else 1
        self._clients = ClientPool(cluster, self._make_client, drop=self._drop, most=most)
        self._mutex = threading.Lock()
        self._took_over = name is None
        self._is_replaced = False

    def take_over(self) -> None:
        """End what an earlier log of the same name left open; ProducerFenced if there is a later.

        Does nothing without a name, or when it was done before.
        """
        with self._mutex:
            if not self._took_over:
                with self._clients.lend({}, timeout_s=TRANSACTION_TIMEOUT_S):
                    self._took_over = True

    def append(
        self,
        topics: Mapping[str, Found],
        shares: Sequence[Share],
        offsets: GroupOffsets | None = None,
    ) -> Together:
        """Store shares, all of them or nothing; nothing if one of them is stored already.

        ProducerFenced. LogError, Unreachable: see above. KafkaException: of GROUP_ERRORS, Kafka
        does not take the offsets of the group; nothing was stored.
        """
        claims = {
            share.place: Claim(share.place, topics[share.place.topic].id, share.producer)
            for share in shares
            if share.producer is not None
        }
        ended: _Ended | None = None
        for _ in range(MAX_ATTEMPTS):
            for share in shares:
                if share.place in claims and self._sequences.is_stored_surely(claims[share.place]):
                    # Its markers may not all be written yet.
                    self._offsets.wait_until_visible(self._offsets.written_ends([share.place]))
                    return Together({}, stored_before=share)
            try:
                attempt = self._attempt(topics, shares, list(claims.values()), offsets)
            except _Ended as error:
                ended = error  # for a newer epoch, which we find, or for another append's sake
                continue
            if attempt.committed:
                self._wait_until_visible(attempt)
                return Together({each.place: each.ranges() for each in attempt.deliveries})
            self._settle(attempt.rivals, claims.values())
        raise LogError(
            f"{', '.join(str(share.place) for share in shares)}: {MAX_ATTEMPTS} attempts gave way "
            f"to others that append with the same producers, or were ended by them. Nothing was "
            f"appended; use a producer from one place only, or try again."
        ) from ended

    def begin_producer(self, producer_id: str) -> int:
        """Return an epoch newer than all that a producer ever began or appended with.

        It is claimed like a batch: of two who begin at once, one goes first.
        """
        for _ in range(MAX_ATTEMPTS):
            epoch = self._sequences.largest_epoch(producer_id) + 1
            claim = Claim(NOWHERE, "", Producer(producer_id, epoch, epoch))
            try:
                attempt = self._attempt({}, [], [claim])
            except (ProducerFenced, _Ended):
                continue  # another was faster
            if attempt.committed:
                self._wait_until_visible(attempt)
                return epoch
            self._sequences.wait_for(attempt.rivals)
        raise LogError(
            f"{self._cluster}: others begin producer {producer_id!r} all the time; {MAX_ATTEMPTS} "
            f"attempts met theirs. Use an id from one place only, or try again."
        )

    def close(self) -> None:
        """End all clients, each when its append has ended."""
        self._clients.close()

    def _attempt(
        self,
        topics: Mapping[str, Found],
        shares: Sequence[Share],
        claims: Sequence[Claim],
        group_offsets: GroupOffsets | None = None,
    ) -> _Attempt:
        """Do steps 1 to 4."""
        met: dict[str, object] = {self._topics.kafka_name(name): topics[name] for name in topics}
        if claims:
            self._sequences.ensure_topic()
            met[self._topics.kafka_name(PRODUCERS_TOPIC)] = None
        timeout_s = _timeout_s(shares)
        what = f"append to {', '.join(map(repr, topics))}"
        with self._clients.lend(met, timeout_s=timeout_s) as client:
            began = time.monotonic()
            try:
                with self._cluster.errors(what, raw=_FENCED | GROUP_ERRORS):
                    attempt = self._store(client, shares, claims, group_offsets)
                    if not attempt.committed:
                        _retried(lambda: client.producer.abort_transaction(timeout_s), timeout_s)
            except KafkaException as error:  # those that `raw` passes on
                if error.args[0].code() in GROUP_ERRORS:
                    raise
                self._check_fence(client, began, error)
                raise _Ended from error
            if attempt.committed:
                self._commit(client, what, began, claims)
        if claims:
            offsets = attempt.entries.offsets
            self._sequences.note(claims, offsets, committed=attempt.committed)
        return attempt

    def _store(
        self,
        client: Client,
        shares: Sequence[Share],
        claims: Sequence[Claim],
        group_offsets: GroupOffsets | None,
    ) -> _Attempt:
        """Do steps 1 to 3, and say whether to commit."""
        producer = client.producer
        producer.begin_transaction()
        deliveries, entries = [], Delivery(PLACE)
        for share in shares:
            name = self._topics.kafka_name(share.place.topic)
            deliveries.append(hand_over(producer, name, share))
            faults.reach("log_in_transaction")
        for claim in claims:
            producer.produce(
                self._topics.kafka_name(PRODUCERS_TOPIC),
                key=claim.key,
                value=claim.value(client.transactional_id),
                partition=PLACE.number,
                on_delivery=entries.note,
            )
        flush(producer, [*deliveries, entries], timeout_s=client.timeout_s)
        if group_offsets is not None:
            send: Callable[..., None] = producer.send_offsets_to_transaction
            _retried(lambda: send(*group_offsets, client.timeout_s), client.timeout_s)
        faults.reach("log_before_decision")
        rivals = self._sequences.rivals(claims, entries.offsets) if claims else []
        committed = not rivals and not any(map(self._sequences.is_stored, claims))
        return _Attempt(deliveries, entries, rivals, committed)

    def _commit(self, client: Client, what: str, began: float, claims: Sequence[Claim]) -> None:
        """Do step 4."""
        timeout_s = client.timeout_s
        try:
            with self._cluster.errors(what, raw=_FENCED):
                _retried(lambda: client.producer.commit_transaction(timeout_s), timeout_s)
        except KafkaException as error:
            self._check_fence(client, began, error)
            if claims:
                raise _Ended from error  # their entries tell whether it was committed before
            raise LogError(
                f"{self._cluster}: cannot {what}: somebody uses the transactional id "
                f"{client.transactional_id!r}, which is this log's own. All of it is stored or "
                f"nothing; look, and append again what is not there."
            ) from error
        faults.reach("log_after_decision")

    def _wait_until_visible(self, attempt: _Attempt) -> None:
        """Do step 5."""
        ends = {each.place: each.end for each in attempt.deliveries}
        offsets = attempt.entries.offsets
        found = self._offsets.wait_until_visible(ends, beside=[PLACE] if offsets else [])
        if offsets:
            self._sequences.pass_over(offsets, found[PLACE])

    def _settle(self, rivals: Iterable[Rival], claims: Iterable[Claim]) -> None:
        """Return once rivals are decided; those of an older epoch are not waited for."""
        epochs = {claim.key: claim.producer.epoch for claim in claims}
        for transactional_id in {
            rival.transaction for rival in rivals if rival.epoch < epochs[rival.key]
        }:
            # Kafka ends the transaction of whoever had the id before.
            end_client(self._begun(transactional_id, TRANSACTION_TIMEOUT_S))
        self._sequences.wait_for(rivals)

    def _make_client(self, timeout_s: int) -> Client:
        if self._is_replaced:
            raise self._replaced()
        return self._begun(f"{self._prefix}headrace.appends:{self._name or uuid4()}", timeout_s)

    def _begun(self, transactional_id: str, timeout_s: int) -> Client:
        """Return a client; a transaction that was open under its id is ended, markers and all."""
        producer = self._cluster.producer(timeout_s=timeout_s, transactional_id=transactional_id)
        client = Client(producer, timeout_s, transactional_id)
        try:
            with self._cluster.errors("begin transactions"):
                _retried(
                    lambda: producer.init_transactions(TRANSACTION_TIMEOUT_S), TRANSACTION_TIMEOUT_S
                )
        except BaseException:
            end_client(client)
            raise
        return client

    def _drop(self, client: Client) -> None:
        """Abort what a client left open. It is not closed, for that would try so once more."""
        try:
            served(lambda: client.producer.abort_transaction(self._cluster.timeout_s))
        except KafkaException as error:
            # None is open, or Kafka has to end it when its time is over; the caller raises why.
            LOGGER.info("a transaction could not be aborted: %s", error.args[0].str())
        client.producer.purge()

    def _check_fence(self, client: Client, began: float, error: KafkaException) -> None:
        """Raise why Kafka does not take a transaction of ours, if beginning again does not help."""
        if time.monotonic() - began >= client.timeout_s:
            raise LogError(
                f"{self._cluster}: an append took over {client.timeout_s} s, and Kafka aborted its "
                f"transaction. Nothing was appended; try again, or append less at once."
            ) from error
        if self._name is not None and self._is_fenced(client, error):
            self._is_replaced = True
            raise self._replaced() from error

    def _is_fenced(self, client: Client, error: KafkaException) -> bool:
        """Say whether somebody else has the id; any other reason for its failure is raised."""
        if error.args[0].code() != KafkaError._FATAL:
            return True
        try:
            # Once a client has failed, all that is asked of it is answered with the reason.
            with self._cluster.errors("append", raw=_FENCED):
                served(lambda: client.producer.abort_transaction(self._cluster.timeout_s))
        except KafkaException:
            return True
        return False

    def _replaced(self) -> ProducerFenced:
        return ProducerFenced(
            f"{self._cluster}: the log {self._name!r} was opened again and appends there. Nothing "
            f"was appended; stop this process, the newer one goes on, or give each its own name."
        )


def _timeout_s(shares: Iterable[Share]) -> int:
    rows = [share.rows for share in shares]
    is_long = (
        sum(each.num_rows for each in rows) > LONG_RECORDS
        or sum(each.nbytes for each in rows) > LONG_BYTES
    )
    return LONG_TRANSACTION_TIMEOUT_S if is_long else TRANSACTION_TIMEOUT_S


def _retried(call: Callable[[], None], timeout_s: int) -> None:
    """Call again what librdkafka says may be called again, for `timeout_s` in all."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return served(call)
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
