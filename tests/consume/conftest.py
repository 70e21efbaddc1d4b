"""Logs on the Kafka broker of the run, as the tests of the log make them."""

from log.conftest import Begin, MakeKafkaLog, begin, make_kafka_log, prefix

__all__ = ["Begin", "MakeKafkaLog", "begin", "make_kafka_log", "prefix"]
