"""Open a log as settings say: embedded in a folder, or on a Kafka cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.log.base import Log
from headrace.log.embedded import EmbeddedLog

__all__ = ["EmbeddedPlace", "KafkaPlace", "LogPlace", "open_log"]


@dataclass(frozen=True)
class EmbeddedPlace:
    """The folder of an embedded log."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class KafkaPlace:
    """A Kafka cluster: librdkafka's properties, and what our topics' names begin with there."""

    client: Mapping[str, str] = field(repr=False)  # it may hold a password
    prefix: str = ""

    def __str__(self) -> str:
        return f"Kafka at {self.client.get('bootstrap.servers', '?')}"


LogPlace = EmbeddedPlace | KafkaPlace


def open_log(place: LogPlace, *, name: str | None = None) -> Log:
    """Open a log. UsageError: a property is wrong, or the client for Kafka is not installed.

    With a name, whoever opens the log under it later takes over from one that was killed at once.
    """
    if isinstance(place, EmbeddedPlace):
        return EmbeddedLog(place.path)
    from headrace.log.kafka import KafkaLog  # needs confluent-kafka, which is an extra

    return KafkaLog(place.client, prefix=place.prefix, name=name)
