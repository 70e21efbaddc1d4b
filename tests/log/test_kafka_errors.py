"""What librdkafka raises is raised as an error of ours, and its absence is told with the cure.

No broker is needed.
"""

import subprocess
import sys

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.errors import AccessDenied, HeadraceError, LogError, TopicNotFound, Unreachable
from headrace.log.kafka.client import Cluster, served

CODES = sorted(
    value
    for name, value in vars(KafkaError).items()
    if name.lstrip("_").isupper() and isinstance(value, int)
)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=1)


def test_every_code_becomes_an_error_that_says_where_and_what_to_do(cluster: Cluster) -> None:
    assert len(CODES) > 100
    for code in CODES:
        with pytest.raises(HeadraceError) as raised, cluster.errors("append to 't'"):
            raise KafkaException(KafkaError(code))
        text = str(raised.value)
        assert text.startswith("Kafka at 127.0.0.1:1: "), text
        assert "append to 't'" in text
        assert text.count(". ") >= 1, f"{text}: what to do is missing"
        assert isinstance(raised.value.__cause__, KafkaException)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._ALL_BROKERS_DOWN, Unreachable),
        (KafkaError._DESTROY_BROKER, Unreachable),
        (KafkaError.SASL_AUTHENTICATION_FAILED, AccessDenied),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AccessDenied),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, TopicNotFound),
        (KafkaError.INVALID_MSG, LogError),
    ],
)
def test_codes_become_what_they_mean(
    cluster: Cluster, code: int, kind: type[HeadraceError]
) -> None:
    assert type(cluster.translated(KafkaError(code), "look")) is kind


def test_codes_that_the_caller_has_words_for_pass(cluster: Cluster) -> None:
    error = KafkaException(KafkaError(KafkaError._FENCED))
    with pytest.raises(KafkaException) as raised, cluster.errors("x", raw={KafkaError._FENCED}):
        raise error
    assert raised.value is error


def test_a_fatal_error_that_was_lost_in_a_callback_is_still_one() -> None:
    def raise_around() -> None:
        error = KafkaException(KafkaError(KafkaError._FENCED))
        raise SystemError("<function note> returned a result with an exception set") from error

    def raise_without() -> None:
        raise SystemError("<method 'flush' of 'cimpl.Producer' objects> returned NULL without …")

    for call in (raise_around, raise_without):
        with pytest.raises(KafkaException) as raised:
            served(call)
        assert raised.value.args[0].code() == KafkaError._FATAL
    with pytest.raises(ZeroDivisionError):
        served(lambda: 1 // 0)
    with pytest.raises(SystemError, match="of another kind"):
        served(raise_another)
    assert served(lambda: 7) == 7


def raise_another() -> None:
    raise SystemError("of another kind")


WITHOUT = """
import sys
sys.modules["confluent_kafka"] = None
import headrace.log
from headrace.errors import UsageError
try:
    from headrace.log import KafkaLog
except UsageError as error:
    print(error)
try:
    headrace.log.missing
except AttributeError as error:
    print(error)
"""


def test_without_the_package_the_log_loads_and_kafka_says_what_to_install() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert run.stdout.splitlines() == [
        "KafkaLog needs the package confluent-kafka, which is not installed. Install it: "
        "`pip install 'headrace[kafka]'`.",
        "module 'headrace.log' has no attribute 'missing'",
    ], run.stderr
