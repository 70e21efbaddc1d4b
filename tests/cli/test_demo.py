"""The demo: the same payments for the same seed, and an end with an audit that holds."""

import itertools
from pathlib import Path

import pytest

from cli.commands import Run
from headrace.cli.demo.project import open_demo
from headrace.cli.demo.traffic import Payment, View, payments
from headrace.log.opening import KafkaPlace


def take(seed: int, count: int = 20_000) -> list[Payment | View]:
    return list(itertools.islice(payments(seed, rate=1_000), count))


def test_a_seed_repeats_its_payments_and_another_does_not() -> None:
    assert take(7) == take(7)
    assert take(7) != take(8)


def test_traffic_is_out_of_order_late_and_broken_as_it_should_be() -> None:
    records = take(1, 30_000)
    assert [each.sent_us for each in records] == sorted(each.sent_us for each in records)
    assert 0.15 < sum(isinstance(each, View) for each in records) / len(records) < 0.4
    found = [each for each in records if isinstance(each, Payment)]
    events = [payment.event_us for payment in found]
    assert events != sorted(events)
    assert all(payment.event_us <= payment.sent_us for payment in found)
    minutes_late = sum(payment.sent_us - payment.event_us > 150_000_000 for payment in found)
    assert 50 < minutes_late < 500
    assert 0.003 < sum(payment.fault != "" for payment in found) / len(found) < 0.007
    assert len({payment.id for payment in found}) == len(found)


@pytest.mark.spark
@pytest.mark.parametrize("log", ["embedded", "kafka"])
def test_a_demo_of_some_seconds_ends_with_an_audit_that_holds(
    tmp_path: Path, process: Run, headrace: Run, request: pytest.FixtureRequest, log: str
) -> None:
    folder = tmp_path / "demo"
    where, run = [], process
    if log == "kafka":  # in this process, whose Spark runs already
        where, run = ["--kafka", request.getfixturevalue("broker").bootstrap], headrace
    answer = run("demo", "--for", "2s", "--rate", 2_000, "--dir", folder, "--json", *where)
    assert answer.code == 0, answer.err
    (found,) = answer.rows
    assert found["audit"]["ok"]
    assert found["read"] == found["appended"] > 2_000
    assert found["lag_records"] == 0
    assert found["late"] > 0
    assert found["dead"] > 0
    assert "seconds=" in answer.err  # no terminal: plain lines
    # The store stays to be looked at.
    for view in ("shops", "visits", "suspicious_cards"):
        seen = headrace("sql", f"SELECT count(*) AS n FROM {view}", "--json", "-p", folder).rows
        assert seen[0]["n"] > 0, view
    rows = headrace("sql", "SELECT sum(payments) AS n FROM countries", "--json", "-p", folder).rows
    assert rows == [{"n": found["read"] - found["dead"]}]


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path, headrace: Run) -> None:
    (tmp_path / "mine").write_text("keep")
    answer = headrace("demo", "--for", "1s", "--dir", tmp_path)
    assert answer.code == 2
    assert "not empty, and no demo" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_demo_keeps_the_log_that_it_began_with(tmp_path: Path, headrace: Run) -> None:
    answer = headrace("demo", "--kafka", "not a host", "--dir", tmp_path / "new")
    assert answer.code == 2
    assert "--kafka not a host: write host:port" in answer.err
    assert not (tmp_path / "new").exists()
    opened = open_demo(tmp_path / "demo", "127.0.0.1:9")
    assert isinstance(opened.config.log, KafkaPlace)
    assert open_demo(tmp_path / "demo", "127.0.0.1:9").config == opened.config
    for other in ((), ("--kafka", "127.0.0.1:8")):
        answer = headrace("demo", "--for", "1s", "--dir", tmp_path / "demo", *other)
        assert answer.code == 2
        assert "this demo's log is Kafka at 127.0.0.1:9" in answer.err
