"""Clients of a Kafka cluster, what they are set to, and their errors in our words.

Promises:
- Every property is passed on to librdkafka; only those that a promise of the log hangs on are ours
  (OURS below) and win over the caller's.
- What librdkafka has to say goes to the logger `headrace.log.kafka`, never to stderr.
- A KafkaException never leaves the log: it is raised as an error of `headrace.errors` from it.
- Whatever waits for the cluster ends after `timeout_s`, an append that was sent after its delivery
  timeout, and what waits for the transactions of others after PATIENCE_S. A cluster that does not
  answer is Unreachable, which names `bootstrap.servers`; one that refuses the credentials is
  AccessDenied, at once, which names their settings.
- A client that got no answer is not asked again: librdkafka's forget the brokers for good when one
  that stops, or has just started, tells them that there are none (its issue 5301).
"""

import concurrent.futures
import logging
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Producer as KafkaProducer
from confluent_kafka.admin import AdminClient

from headrace.errors import (
    AccessDenied,
    HeadraceError,
    LogError,
    RecordTooLarge,
    TopicNotFound,
    Unreachable,
    UsageError,
)
from headrace.log.base import MAX_RECORD_BYTES, Acks
from headrace.log.secrets import check_known

__all__ = [
    "DELIVERY_TIMEOUT_S",
    "LOGGER",
    "LONG_TRANSACTION_TIMEOUT_S",
    "LOOK_AGAIN_S",
    "LOOK_S",
    "MAX_MESSAGE_BYTES",
    "PATIENCE_S",
    "TRANSACTION_TIMEOUT_S",
    "Cluster",
    "check_each",
    "served",
]

LOGGER = logging.getLogger("headrace.log.kafka")
# Without a handler Python would print warnings to stderr, one per second while a broker is away.
LOGGER.addHandler(logging.NullHandler())

#: What a topic of ours takes as one batch: the largest record with what a producer adds to its
#: headers and what Kafka adds to a batch, and as much again, so that small appends are one batch.
MAX_MESSAGE_BYTES = 2 * MAX_RECORD_BYTES + (64 << 10)
#: How long a record may take to be acknowledged.
DELIVERY_TIMEOUT_S = 30
#: How long a transaction may take. Kafka aborts that of a producer that died after this, and looks
#: for such every 10 s (`transaction.abort.timed.out.transaction.cleanup.interval.ms`). Until then
#: it holds back all that comes after it.
TRANSACTION_TIMEOUT_S = 15
#: The same for an append so large that it would not be sent by then; below the most that Kafka
#: allows by default, 15 minutes.
LONG_TRANSACTION_TIMEOUT_S = 600
#: How long we wait for a transaction of others that holds back what we want to see.
PATIENCE_S = 45
# How often a wait looks whether the cluster has refused us meanwhile.
LOOK_S = 0.25
# Between two looks for a change in the cluster, where there is no event to wait for.
LOOK_AGAIN_S = 0.01

Answer = TypeVar("Answer")

_COMMON = {"client.id": "headrace", "reconnect.backoff.max.ms": "1000"}
_CONSUMER = {
    "group.id": "headrace",  # librdkafka wants one; nothing is ever committed to it
    # What waits for a fetch at the partition's end is a reader that has all it wants to see.
    "fetch.wait.max.ms": "5",
    # librdkafka's pause when its buffer is full; with its default of 1000 a scan stands still.
    "fetch.queue.backoff.ms": "5",
    "max.partition.fetch.bytes": str(4 << 20),
}
_MEMBER = {
    # What there is to fetch is answered at once; a partition that is assigned meanwhile waits for
    # the fetch of the others to end.
    "fetch.wait.max.ms": "100",
    # A member hears with its heartbeat that another one came or went; librdkafka's default is 3 s.
    "heartbeat.interval.ms": "1000",
    # How soon partitions that a topic got are seen; librdkafka's default is 5 minutes.
    "topic.metadata.refresh.interval.ms": "5000",
}
_WATCHER = {
    # How seldom a broker with nothing new answers. A fetch under way leaves out the partitions that
    # librdkafka was not ready to fetch, so this is also how late their first record may be told.
    "fetch.wait.max.ms": "100",
    # Kafka answers with one batch at least, and that is all there is to know.
    "fetch.max.bytes": "1024",
    "max.partition.fetch.bytes": "1024",
    "message.max.bytes": "1024",
    "queued.max.messages.kbytes": "1024",
}
#: Not the caller's to choose: the promises of the log hang on them.
OURS_CONSUMER = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "check.crcs": "true",
}
OURS_MEMBER = {
    **OURS_CONSUMER,
    "isolation.level": "read_committed",
    # With the newer protocol (KIP-848) the cluster sets the session's time, not the member, and who
    # joins with an instance id that is in use is refused instead of taking over.
    "group.protocol": "classic",
    "partition.assignment.strategy": "cooperative-sticky",
}
OURS_PRODUCER = {
    "acks": "all",
    "enable.idempotence": "true",
    "message.max.bytes": str(MAX_MESSAGE_BYTES),
    "batch.size": str(MAX_MESSAGE_BYTES),
    "batch.num.messages": "100000",
    # One append has to fit: records.MAX_APPEND_BYTES.
    "queue.buffering.max.messages": "10000000",
    "queue.buffering.max.kbytes": "2097151",
    # A topic that was deleted just now is not to come back as the cluster's defaults would have it.
    "allow.auto.create.topics": "false",
    # How long a topic that is not there is looked for; it was, a second ago at most.
    "topic.metadata.propagation.max.ms": "2000",
}

_CREDENTIALS = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.ILLEGAL_SASL_STATE,
}
_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_AWAY = {
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._DESTROY_BROKER,  # librdkafka forgot a broker that went away during a request
    KafkaError._RESOLVE,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
    KafkaError._PURGE_QUEUE,  # records of a transaction that did not get through in time
    KafkaError._PURGE_INFLIGHT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_CONTROLLER,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
_UNKNOWN = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}


def served(call: Callable[[], Answer]) -> Answer:
    """Make a call that runs callbacks. KafkaException, with the code _FATAL if it does not tell.

    confluent-kafka raises a client's fatal error while callbacks still run. What comes of that is
    the error, a SystemError around it or without it, or a KafkaError, which is no exception.
    """
    try:
        return call()
    except SystemError as error:
        if "cimpl." not in str(error) and not isinstance(error.__cause__, KafkaException):
            raise
    except BaseException:
        raise
    except:  # noqa: E722, S110 - see above; nothing may be raised while Python handles this one
        pass
    raise KafkaException(KafkaError(KafkaError._FATAL))


def check_each(answers: Iterable[TopicPartition]) -> None:
    """Raise the first error that Kafka answers for a partition, as a KafkaException."""
    for answer in answers:
        if answer.error is not None:
            raise KafkaException(answer.error)


class Cluster:
    """How to reach a cluster. Makes clients, waits for them, and translates their errors.

    With `believes_producers`, the time that a producer gave is taken for the arrival.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        timeout_s: float,
        believes_producers: bool = False,
    ) -> None:
        if not properties.get("bootstrap.servers"):
            raise UsageError(
                "Kafka: the property `bootstrap.servers` is missing; name at least one broker, "
                "such as 'kafka-1:9092,kafka-2:9092'."
            )
        check_known(properties)
        self.properties = dict(properties)
        self.timeout_s = timeout_s
        self.believes_producers = believes_producers
        self._refusal: KafkaError | None = None
        self._mutex = threading.Lock()
        self._admin: AdminClient | None = None
        self._closed = False

    def __str__(self) -> str:
        return f"Kafka at {self.properties['bootstrap.servers']}"

    @property
    def admin(self) -> AdminClient:
        """The client for topics and offsets. UsageError: a property is wrong, or it is closed."""
        with self._mutex:
            if self._closed:
                raise UsageError(f"{self}: this log is closed; open it anew.")
            if self._admin is None:
                with self._configuring():
                    settings = self._settings({}, {"error_cb": self._note})
                    self._admin = AdminClient(settings, logger=LOGGER)
            return self._admin

    def _drop_admin(self, admin: AdminClient) -> None:
        with self._mutex:
            if self._admin is admin:
                self._admin = None  # whoever still waits for an answer of it keeps it

    def close(self) -> None:
        """End the client for topics and offsets; all others belong to who asked for them."""
        with self._mutex:
            self._closed = True
            self._admin = None  # it has no `close`: it ends when nobody refers to it

    def consumer(self, *, committed: bool = True, patient: bool = False) -> Consumer:
        """Return a consumer that never commits and, as told, sees committed records only.

        A patient one stays at the end of what it reads. UsageError: a property is wrong.
        """
        level = "read_committed" if committed else "read_uncommitted"
        ours = {**OURS_CONSUMER, "isolation.level": level, "error_cb": self._note}
        with self._configuring():
            defaults = {**_CONSUMER, **_MEMBER} if patient else _CONSUMER
            return Consumer(self._settings(defaults, ours), logger=LOGGER)

    def watcher(self) -> Consumer:
        """Return a consumer that is to say when records come, not to read them. UsageError."""
        ours = {**OURS_CONSUMER, "isolation.level": "read_committed", "error_cb": self._note}
        # Its offsets are positions that have no record yet, so it is told when it gets there.
        ours |= {**_WATCHER, "enable.partition.eof": "false"}
        with self._configuring():
            return Consumer(self._settings(_CONSUMER, ours), logger=LOGGER)

    def member(self, settings: Mapping[str, str], on_trouble: Callable[[], None]) -> Consumer:
        """Return a consumer that takes part in a group. UsageError: a property is wrong.

        `on_trouble` is called when a broker, one of several perhaps, is out of reach or refuses us.
        """

        def note(error: KafkaError) -> None:
            self._note(error)
            if error.code() in _AWAY | _CREDENTIALS:
                on_trouble()

        beats_ms = self.properties.get("heartbeat.interval.ms", _MEMBER["heartbeat.interval.ms"])
        # Two beats in a row may fail.
        most_ms = int(settings["session.timeout.ms"]) // 3
        with self._configuring():
            beat = {"heartbeat.interval.ms": str(max(1, min(int(beats_ms), most_ms)))}
            ours = {**OURS_MEMBER, **settings, **beat, "error_cb": note}
            return Consumer(self._settings({**_CONSUMER, **_MEMBER}, ours), logger=LOGGER)

    def check_contact(self, client: Consumer, what: str) -> None:
        """Raise what keeps a client in the background from its work. AccessDenied, Unreachable."""
        if self._refusal is not None:
            raise self.translated(self._refusal, what)
        with self.errors(what):
            client.list_topics(timeout=self.timeout_s)

    def producer(
        self, *, timeout_s: int, transactional_id: str | None = None, acks: Acks = "all"
    ) -> KafkaProducer:
        """Return an idempotent producer that waits for all replicas. UsageError.

        `timeout_s` bounds the delivery of its records, and its transactions. It sends nothing by
        itself before that is over: an append is flushed whole. With `acks=1` it waits for the
        partition's leader only and, as Kafka has it then, what it sends again may be stored twice.
        """
        timeout_ms = str(timeout_s * 1000)
        linger_ms = str(timeout_s * 1000 - 1)  # librdkafka wants it below the timeout
        ours = {**OURS_PRODUCER, "message.timeout.ms": timeout_ms, "linger.ms": linger_ms}
        if acks == 1:
            # One request at a time, or one that is sent again could pass the one after it.
            ours |= {"acks": "1", "enable.idempotence": "false", "max.in.flight": "1"}
        if transactional_id is not None:
            ours |= {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        with self._configuring():
            return KafkaProducer(self._settings({}, ours), logger=LOGGER)

    @contextmanager
    def _configuring(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise UsageError(
                f"{self}: librdkafka refuses a property: {error.args[0].str()}. Correct it."
            ) from error

    def _settings(self, defaults: Mapping[str, str], ours: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: str(value) for name, value in self.properties.items()}
        return {**_COMMON, **defaults, **given, **ours}

    def _note(self, error: KafkaError) -> None:
        if error.code() in _CREDENTIALS:
            self._refusal = error
        LOGGER.info("%s: %s", self, error.str())

    def wait(
        self,
        future: "concurrent.futures.Future[Any]",
        what: str,
        *,
        raw: Container[int] = (),
    ) -> Any:
        """Return what an admin call comes to, or raise its error in our words."""
        deadline = time.monotonic() + self.timeout_s + 1  # the call's own timeout comes first
        admin = self.admin
        try:
            with self.errors(what, raw=raw):
                while True:
                    try:
                        result = future.result(timeout=LOOK_S)
                    except concurrent.futures.TimeoutError:
                        admin.poll(0)
                        if self._refusal is not None:
                            raise KafkaException(self._refusal) from None
                        if time.monotonic() > deadline:
                            raise self.unreachable(what) from None
                    else:
                        self._refusal = None  # whatever it was, it is over
                        return result
        except Unreachable:
            self._drop_admin(admin)
            raise
        finally:
            del admin  # the future keeps its error, and that this frame

    def topic_names(self) -> list[str]:
        """Return what the cluster calls its topics, all of them."""
        deadline = time.monotonic() + self.timeout_s
        # This one blocks and does not hear a refusal, so it is tried for ever longer times.
        timeout_s = 1.0
        admin = self.admin
        with self.errors("list topics"):
            while True:
                timeout_s = min(timeout_s, max(0.0, deadline - time.monotonic()))
                try:
                    return list(admin.list_topics(timeout=timeout_s).topics)
                except KafkaException:
                    admin.poll(0)
                    if self._refusal is not None or time.monotonic() > deadline:
                        self._drop_admin(admin)
                        raise
                timeout_s *= 2

    @contextmanager
    def errors(self, what: str, *, raw: Container[int] = ()) -> Iterator[None]:
        """Raise what librdkafka raises inside as an error of ours; `what` was being done.

        Errors with the codes in `raw` pass: the caller has better words for them.
        """
        try:
            yield
        except KafkaException as error:
            if error.args[0].code() in raw:
                raise
            raise self.translated(error.args[0], what) from error

    def unreachable(self, what: str) -> HeadraceError:
        """Return the one error for a cluster that does not answer, or that refused us before."""
        if self._refusal is not None:
            return self.translated(self._refusal, what)
        return Unreachable(
            f"{self}: no answer in {self.timeout_s:g} s, cannot {what}. Start the broker, or "
            f"correct `bootstrap.servers`; behind TLS or SASL also `security.protocol`."
        )

    def translated(self, error: KafkaError, what: str) -> HeadraceError:
        """Return librdkafka's error as one of ours."""
        code, reason = error.code(), error.str()
        if code in _CREDENTIALS:
            return AccessDenied(
                f"{self}: refused to let us in, cannot {what}: {reason}. Correct `sasl.username`, "
                f"`sasl.password` and `sasl.mechanism`, or `security.protocol` and the `ssl.*` "
                f"properties."
            )
        if code in _RIGHTS:
            return AccessDenied(
                f"{self}: no right to {what}: {reason}. Grant it to the user of `sasl.username` "
                f"or of the certificate with Kafka's ACLs."
            )
        if code in _AWAY:
            return self.unreachable(what)
        if code in _UNKNOWN:
            return TopicNotFound(
                f"{self}: cannot {what}: {reason}. The topic was deleted, or has fewer partitions; "
                f"look at it with `topics()`."
            )
        if code in _TOO_LARGE:
            return RecordTooLarge(
                f"{self}: cannot {what}: {reason}. Set the topic's `max.message.bytes`, and the "
                f"brokers' limit, to {MAX_MESSAGE_BYTES} or more."
            )
        return LogError(
            f"{self}: cannot {what}: {reason} ({error.name()}). Look at the brokers' logs, and at "
            f"the logger `headrace.log.kafka`."
        )
