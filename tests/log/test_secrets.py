"""Credentials do not travel in the clear: as names of variables, or encrypted, or not at all."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.engine.spark.secrecy import check_secrecy
from headrace.errors import AccessDenied, UsageError
from headrace.log import EmbeddedLog, KafkaLog, Partition, Range
from headrace.log.kafka.reader import KafkaSplit
from headrace.log.opening import KafkaPlace
from headrace.log.secrets import FromEnvironment, check_known, literal_secrets
from headrace.project.config import read_config

PASSWORD = "rabbit-hole"
PROPERTIES = {"bootstrap.servers": "127.0.0.1:1", "sasl.username": "alice"}
ENCRYPTED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> FromEnvironment:
    monkeypatch.setenv("CELLAR_KEY", PASSWORD)
    return FromEnvironment("${CELLAR_KEY}")


def test_a_text_of_the_environment_travels_as_the_name(
    password: FromEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert password == PASSWORD
    sent = pickle.dumps({"sasl.password": password})
    assert PASSWORD.encode() not in sent
    assert pickle.loads(sent) == {"sasl.password": PASSWORD}
    monkeypatch.setenv("CELLAR_KEY", "another there")
    there = pickle.loads(sent)
    assert there == {"sasl.password": "another there"}
    assert pickle.loads(pickle.dumps(there)) == there
    monkeypatch.delenv("CELLAR_KEY")
    with pytest.raises(AccessDenied, match=r"sasl\.password: .* no CELLAR_KEY, .* Set it where"):
        check_known(pickle.loads(sent))
    with pytest.raises(KeyError):
        FromEnvironment("${CELLAR_KEY}")


def test_the_secrets_that_would_travel_are_known_by_name(password: FromEnvironment) -> None:
    secret = {
        "sasl.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.keystore.password": PASSWORD,
        "ssl.key.pem": PASSWORD,
        "sasl.oauthbearer.client.secret": PASSWORD,
        "sasl.oauthbearer.config": PASSWORD,
        "sasl.oauthbearer.assertion.private.key.passphrase": PASSWORD,
        "sasl.oauthbearer.assertion.private.key.pem": PASSWORD,
    }
    plain = {
        **PROPERTIES,
        "ssl.key.location": "/keys/key.pem",
        "ssl.keystore.location": "/keys/store",
        "ssl.certificate.pem": "public",
        "ssl.ca.location": "/keys/ca.pem",
        "sasl.oauthbearer.token.endpoint.url": "https://login",
        "sasl.oauthbearer.assertion.file": "/keys/assertion",
        "sasl.oauthbearer.client.id": "headrace",
        "sasl.mechanism": "PLAIN",
    }
    assert literal_secrets({**secret, **plain}) == sorted(secret)
    assert literal_secrets({**plain, **dict.fromkeys(secret, password)}) == []


def test_a_split_carries_names_not_secrets(password: FromEnvironment) -> None:
    place = Range(Partition("t", 0), 0, 1)
    for value, is_sent in ((password, False), (PASSWORD, True)):
        split = KafkaSplit(place, "t", {**PROPERTIES, "sasl.password": value}, 1.0)
        assert (PASSWORD.encode() in pickle.dumps(split)) == is_sent
        assert PASSWORD not in repr(split)


def test_a_project_passes_on_where_its_secrets_are(
    tmp_path: Path, password: FromEnvironment
) -> None:
    (tmp_path / "headrace.toml").write_text(
        """
        [log]
        kind = "kafka"
        [log.client]
        "bootstrap.servers" = "127.0.0.1:1"
        "sasl.password" = "${CELLAR_KEY}"
        """
    )
    place = read_config(tmp_path).log
    assert isinstance(place, KafkaPlace)
    assert place.client["sasl.password"] == password
    assert literal_secrets(place.client) == []
    assert PASSWORD.encode() not in pickle.dumps(place.client)


def settings(master: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {"spark.master": master, **(more or {})}


def test_secrets_go_to_no_other_machine_in_the_clear(
    tmp_path: Path, password: FromEnvironment
) -> None:
    literal = KafkaLog({**PROPERTIES, "sasl.password": PASSWORD})
    named = KafkaLog({**PROPERTIES, "sasl.password": password})
    embedded = EmbeddedLog(tmp_path / "log")
    cluster = settings("spark://there:7077")
    for log, allowed in (
        (named, [cluster, settings("yarn")]),
        (embedded, [cluster]),
        (
            literal,
            [
                settings("local[*]"),
                settings("local"),
                {},
                settings("spark://there:7077", ENCRYPTED),
                settings("yarn", {"spark.ssl.rpc.enabled": "TRUE"}),
            ],
        ),
    ):
        for each in allowed:
            check_secrecy(log, each.get)
    for refused in (
        cluster,
        settings("k8s://there"),
        settings("spark://there:7077", {"spark.authenticate": "true"}),
        settings("yarn", {"spark.network.crypto.enabled": "true"}),
    ):
        with pytest.raises(UsageError) as caught:
            check_secrecy(literal, refused.get)
        message = str(caught.value)
        assert message.startswith("sasl.password: Spark would send it in the clear to ")
        assert refused["spark.master"] in message
        assert '"${NAME}"' in message
        assert PASSWORD not in message
    for log in (literal, named, embedded):
        log.close()
