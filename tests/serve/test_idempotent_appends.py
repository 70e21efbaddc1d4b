"""Idempotency-Key: a request is carried out once, whatever is lost, dies or comes twice at once.

Method: answers are lost by a log that fails after it has appended, or before; engines die at the
fault points of the log and are followed by another on the same folder. What is stored is compared
with what was sent, record by record.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import pytest

from headrace import faults
from headrace.errors import KeyReused, PositionLost, Unreachable
from headrace.log import EmbeddedLog
from headrace.log.base import Append, Appended, Log, Partition, Range, TopicSettings
from headrace.log.names import REQUESTS_TOPIC
from headrace.log.records import records
from headrace.model.definitions import Project
from headrace.serve.ingest import requests
from headrace.serve.ingest.appending import Ingest
from headrace.serve.ingest.decoding import Body, Kind, decode
from headrace.serve.ingest.requests import Done, Request
from serve.topics_served import LINES, Served, serving, serving_log

if TYPE_CHECKING:
    from broker import Broker


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        yield served


def body_of(name: str, count: int = 5) -> str:
    return "\n".join(json.dumps({"card": f"{name}-{at}"}) for at in range(count))


def send(served: Served, name: str, body: str, **more: str) -> httpx.Response:
    return served.append("payments", body, type_=LINES, headers={"Idempotency-Key": name}, **more)


# Over HTTP


def test_the_same_request_is_answered_alike_and_stored_once(served: Served) -> None:
    first = send(served, "k-1", body_of("a"))
    assert first.status_code == 200
    assert [send(served, "k-1", body_of("a")).json() for _ in range(3)] == [first.json()] * 3
    other = send(served, "k-2", body_of("a"))
    assert other.json()["position"] != first.json()["position"]
    assert len(served.values("payments")) == 10


def test_another_engine_knows_the_requests_of_the_last_one(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        first = [send(served, f"k-{number}", body_of("a")).json() for number in range(5)]
    for _ in range(2):
        with serving(tmp_path) as served:
            again = [send(served, f"k-{number}", body_of("a")).json() for number in range(5)]
            assert again == first
            assert len(served.values("payments")) == 25
            assert send(served, "k-0", body_of("b")).status_code == 409


def test_the_same_key_with_another_request_is_refused(served: Served) -> None:
    send(served, "k-1", body_of("a"))
    for answer in (
        send(served, "k-1", body_of("b")),
        send(served, "k-1", body_of("a") + "\n"),
        send(served, "k-1", body_of("a"), partition="0"),
        send(served, "k-1", body_of("a"), key="id"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (409, "KeyReused")
        assert "use a new key for each request" in answer.json()["message"]
    assert len(served.values("payments")) == 5


def test_a_key_is_one_topic_s_own(served: Served) -> None:
    send(served, "k-1", body_of("a"))
    headers = {"Idempotency-Key": "k-1"}
    assert served.append("clicks", body_of("a"), type_=LINES, headers=headers).status_code == 200
    assert len(served.values("clicks")) == 5


def test_of_requests_with_one_key_at_once_one_is_carried_out(served: Served) -> None:
    with ThreadPoolExecutor(10) as pool:
        alike = list(pool.map(lambda _: send(served, "alike", body_of("a")), range(10)))
        other = list(pool.map(lambda at: send(served, "other", body_of(f"b{at}")), range(10)))
    assert {answer.text for answer in alike} == {alike[0].text}
    assert alike[0].status_code == 200
    assert sorted(answer.status_code for answer in other) == [200] + [409] * 9
    assert len(served.values("payments")) == 10


def test_a_request_that_was_refused_may_come_again_mended(served: Served) -> None:
    assert send(served, "k-1", "{").status_code == 400
    assert send(served, "k-1", body_of("a"), partition="9").status_code == 400
    assert send(served, "k-1", body_of("a")).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "é".encode(), "a\tb"])
def test_bad_keys_are_refused(served: Served, key: str | bytes) -> None:
    headers = {"Idempotency-Key": key}
    answer = served.append("clicks", "{}", headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "UsageError")
    assert served.values("clicks") == []


def test_the_requests_are_the_engine_s_own_topic(served: Served) -> None:
    send(served, "k-1", body_of("a"))
    answer = served.append(REQUESTS_TOPIC, "{}")
    assert (answer.status_code, "the engine alone writes there" in answer.text) == (400, True)


def test_twenty_producers_that_try_again_store_every_record_once(tmp_path: Path) -> None:
    with closing(Forgetful(tmp_path / "log", sync=False)) as log:
        log.create_topic("payments", partitions=4)
        with serving_log(tmp_path, log) as served:
            log.failures = random.Random(7)

            def produce(producer: int) -> None:
                for number in range(5):
                    name = f"{producer}-{number}"
                    while True:
                        answer = send(served, name, body_of(name, 3))
                        if answer.status_code == 200 and log.dice(0.7):
                            break  # else as if the answer had been lost
                        assert answer.status_code in (200, 503), answer.text

            with ThreadPoolExecutor(20) as pool:
                list(pool.map(produce, range(20)))
            log.failures = None
            wanted = Counter(
                f"{producer}-{number}-{at}"
                for producer in range(20)
                for number in range(5)
                for at in range(3)
            )
            assert Counter(json.loads(each)["card"] for each in served.values("payments")) == wanted
            assert log.failed > 10  # the injected failures happened


class Forgetful(EmbeddedLog):
    """A log that fails now and then, before it appends or after."""

    failures: random.Random | None = None
    failed = 0

    def dice(self, chance: float) -> bool:
        return self.failures is None or self.failures.random() < chance

    def append_all(self, appends: Sequence[Append]) -> list[Appended]:
        self._fail("before")
        done = super().append_all(appends)
        self._fail("after")
        return done

    def _fail(self, when: str) -> None:
        if not self.dice(0.8):
            self.failed += 1
            raise Unreachable(f"the connection was lost {when} the append")


# Engines that die, and two of them at once


def ingest_of(log: Log) -> Ingest:
    return Ingest(log, lambda: Project((), ()))


def append(ingest: Ingest, key: str, name: str, *, count: int = 20) -> Done:
    content = body_of(name, count).encode()
    request = Request.of("payments", key, [content])
    return ingest.append("payments", decode(Body(content, Kind.LINES)), key="card", request=request)


def cards(log: Log) -> Counter[str]:
    ranges = [Range(place, *extent) for place, extent in log.extents("payments").items()]
    return Counter(
        json.loads(value)["card"]
        for batches in log.read_many(ranges)
        for batch in batches
        for value in batch.column("value").to_pylist()
    )


def all_of(*names: str, count: int = 20) -> Counter[str]:
    return Counter(f"{name}-{at}" for name in names for at in range(count))


@pytest.mark.parametrize(
    ("point", "is_stored"),
    [
        ("log_torn", False),
        ("log_in_transaction", False),
        ("log_before_decision", False),
        ("log_after_decision", True),
        ("log_in_acknowledgement", True),
    ],
)
def test_an_engine_that_dies_on_the_way_stores_a_request_once(
    tmp_path: Path, point: str, is_stored: bool
) -> None:
    with closing(EmbeddedLog(tmp_path)) as log:
        log.create_topic("payments", partitions=4)
        ingest = ingest_of(log)
        append(ingest, "k-0", "before")
        faults.arm(point)
        with pytest.raises(faults.Crash):
            append(ingest, "k-1", "crashed")
    with closing(EmbeddedLog(tmp_path)) as log:
        assert cards(log) == all_of("before", *(["crashed"] if is_stored else []))
        ingest = ingest_of(log)
        first = append(ingest, "k-1", "crashed")
        assert append(ingest, "k-1", "crashed") == first
        assert cards(log) == all_of("before", "crashed")
        assert located(log, first) == all_of("crashed")
        with pytest.raises(KeyReused):
            append(ingest, "k-1", "another")


def located(log: Log, done: Done) -> Counter[str]:
    """Return the cards of the records that an answer names."""
    return Counter(
        json.loads(value)["card"]
        for batches in log.read_many(done.ranges)
        for batch in batches
        for value in batch.column("value").to_pylist()
    )


def test_records_are_found_behind_those_of_others(tmp_path: Path) -> None:
    # Others append between the look at the ends and the append, and the engine dies after it.
    class Crowded(EmbeddedLog):
        def append_all(self, appends: Sequence[Append]) -> list[Appended]:
            for number in range(4):
                others.append("payments", records(body_of("other").split("\n")), partition=number)
            super().append_all(appends)
            raise faults.Crash

    with closing(EmbeddedLog(tmp_path)) as others:
        others.create_topic("payments", partitions=4)
        with closing(Crowded(tmp_path)) as crowded, pytest.raises(faults.Crash):
            append(ingest_of(crowded), "k-1", "crashed")
        first = append(ingest_of(others), "k-1", "crashed")
        assert located(others, first) == all_of("crashed")
        assert cards(others)["crashed-0"] == 1
        assert cards(others)["other-0"] == 4


def test_two_engines_on_one_log_store_a_request_once(tmp_path: Path) -> None:
    with closing(EmbeddedLog(tmp_path)) as one, closing(EmbeddedLog(tmp_path)) as two:
        one.create_topic("payments", partitions=4)
        engines = [ingest_of(one), ingest_of(two)]
        for number in range(6):
            first = append(engines[number % 2], f"k-{number}", f"{number}")
            assert append(engines[1 - number % 2], f"k-{number}", f"{number}") == first

        def race(number: int) -> Done:
            return append(engines[number % 2], f"race-{number // 2}", f"race-{number // 2}")

        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(race, range(20)))
        assert done[::2] == done[1::2]
        names = [str(number) for number in range(6)] + [f"race-{number}" for number in range(10)]
        assert cards(one) == all_of(*names)


def test_the_newest_requests_are_known_and_older_ones_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_KNOWN", 10)
    with closing(EmbeddedLog(tmp_path, sync=False)) as log:
        log.create_topic("payments", partitions=2)
        ingest = ingest_of(log)
        done = [append(ingest, f"k-{number}", f"{number}", count=2) for number in range(15)]
        for engine in (ingest, ingest_of(log)):
            for number in range(5, 15):
                assert append(engine, f"k-{number}", f"{number}", count=2) == done[number]
        append(ingest, "k-0", "0", count=2)
        assert cards(log)["0-0"] == 2
        settings = log.topic(REQUESTS_TOPIC).settings
        assert settings.retention_ms == requests.KEPT_MS
        assert settings.retention_bytes is not None


def test_a_request_whose_records_are_gone_is_not_carried_out_again(tmp_path: Path) -> None:
    with closing(EmbeddedLog(tmp_path, sync=False)) as log:
        log.create_topic("payments", partitions=1)
        append(ingest_of(log), "k-1", "gone")
        log.change_topic("payments", settings=TopicSettings(retention_bytes=1))
        append(ingest_of(log), "k-2", "kept")
        log._appender(Partition("payments", 0)).seal()
        log.maintain()
        with pytest.raises(PositionLost, match="carried out before"):
            append(ingest_of(log), "k-1", "gone")


# On Kafka


@pytest.mark.slow
def test_on_kafka_a_request_is_stored_once_too(broker: "Broker") -> None:
    from headrace.log.kafka.log import KafkaLog

    properties, prefix = {"bootstrap.servers": broker.bootstrap}, f"{uuid4().hex}."

    class LosesAnswers(KafkaLog):
        loses = False

        def append_all(self, appends: Sequence[Append]) -> list[Appended]:
            done = super().append_all(appends)
            if self.loses:
                self.loses = False
                raise Unreachable("the connection was lost after the append")
            return done

    with closing(LosesAnswers(properties, prefix=prefix, name="engine")) as log:
        log.create_topic("payments", partitions=2)
        ingest = ingest_of(log)
        first = append(ingest, "k-1", "a")
        log.loses = True
        with pytest.raises(Unreachable):
            append(ingest, "k-2", "b")
        second = append(ingest, "k-2", "b")
        assert append(ingest, "k-1", "a") == first
        assert located(log, second) == all_of("b")
    with closing(KafkaLog(properties, prefix=prefix, name="engine")) as log:
        again = ingest_of(log)
        assert (append(again, "k-1", "a"), append(again, "k-2", "b")) == (first, second)
        with pytest.raises(KeyReused):
            append(again, "k-1", "c")
        assert cards(log) == all_of("a", "b")
