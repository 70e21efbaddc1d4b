"""The log on Kafka: a `Log` on a cluster. It needs the package confluent-kafka."""

from importlib.util import find_spec

from headrace.errors import UsageError

if find_spec("confluent_kafka") is None:
    raise UsageError(
        "KafkaLog needs the package confluent-kafka, which is not installed. Install it: "
        "`pip install 'headrace[kafka]'`."
    )

from headrace.log.kafka.log import KafkaLog

__all__ = ["KafkaLog"]
