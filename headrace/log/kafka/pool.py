"""Kafka clients that append, each lent to one append at a time.

Promises:
- A client is never used by two appends at once, and one whose append failed is not used again.
- At most MAX_CLIENTS exist per pool, each with a few threads and a connection to every leader; who
  comes when all are lent waits.
- A client knows the topics that it is lent for as they are now. librdkafka believes what it knows
  of a topic for minutes, partitions added or the topic made anew meanwhile; a new client knows
  nothing yet.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka import Producer as KafkaProducer

from headrace.errors import UsageError
from headrace.log.kafka.client import LOGGER, PATIENCE_S, Cluster, served

__all__ = ["MAX_CLIENTS", "Client", "ClientPool", "end_client"]

MAX_CLIENTS = 8


class Client(NamedTuple):
    """A client and how long its appends may take."""

    producer: KafkaProducer
    timeout_s: int
    transactional_id: str = ""


def end_client(client: Client) -> None:
    """Drop what a client still has to send, and end its threads."""
    try:
        client.producer.purge()
        served(client.producer.close)
    except KafkaException as error:
        # Whatever ails it, such as that it was fenced while it was idle, it is not used again, and
        # ends when nobody refers to it.
        LOGGER.info("a client ended with an error: %s", error.args[0].str())


class _Idle(NamedTuple):
    client: Client
    seen: dict[str, object]  # topics as they were when the client first met them


class ClientPool:
    """Clients of one kind; `make` is given the timeout. Safe for several threads.

    `drop` ends a client whose append failed.
    """

    def __init__(
        self,
        cluster: Cluster,
        make: Callable[[int], Client],
        *,
        drop: Callable[[Client], None],
        most: int = MAX_CLIENTS,
    ) -> None:
        self._cluster = cluster
        self._make = make
        self._drop = drop
        self._changed = threading.Condition()
        self._free = most
        self._idle: list[_Idle] = []
        self._closed = False

    @contextmanager
    def lend(self, topics: Mapping[str, object], *, timeout_s: int) -> Iterator[Client]:
        """Lend a client whose appends may take `timeout_s`. UsageError: the log is closed.

        `topics` says what Kafka calls them, each with a value that is another one when the topic
        is. Unreachable: nobody tells about them.
        """
        with self._turn():
            client, seen = self._take(topics, timeout_s)
            try:
                yield client
            except BaseException:
                self._drop(client)  # it may hold records of the append that failed
                raise
            with self._changed:
                keep = not self._closed
                if keep:
                    self._idle.append(_Idle(client, seen))
            if not keep:
                end_client(client)

    def close(self) -> None:
        """End the idle clients; those that append end with their append."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for client, _ in idle:
            end_client(client)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        deadline = time.monotonic() + PATIENCE_S
        with self._changed:
            while not self._free and not self._closed:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise self._cluster.unreachable("append before others have appended")
            if self._closed:
                raise UsageError(f"{self._cluster}: this log is closed; open it anew.")
            self._free -= 1
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify()

    def _take(self, topics: Mapping[str, object], timeout_s: int) -> _Idle:
        with self._changed:
            idle = self._idle.pop() if self._idle else None
        if idle is not None and not (
            idle.client.timeout_s == timeout_s
            and all(idle.seen.get(name, found) == found for name, found in topics.items())
        ):
            end_client(idle.client)
            idle = None
        taken = idle or _Idle(self._make(timeout_s), {})
        try:
            self._introduce(taken, topics)
        except BaseException:
            end_client(taken.client)
            raise
        return taken

    def _introduce(self, taken: _Idle, topics: Mapping[str, object]) -> None:
        """Make a client look for topics that are new to it; by itself it takes up to a second."""
        for name in topics.keys() - taken.seen.keys():
            with self._cluster.errors(f"look for topic {name!r}"):
                taken.client.producer.list_topics(name, timeout=self._cluster.timeout_s)
            taken.seen[name] = topics[name]
