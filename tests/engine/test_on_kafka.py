"""The engine on Kafka: the same answers, over broker restarts too.

Method: the property of test_any_split.py once more, with a real broker below; transactions, some of
them aborted, stand among the records. `make test` has three of its views (tumbling windows, rows of
records, panes), `make soak` all of them. Then a broker that goes away in the middle of a run.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from agreement import any_split, assert_agrees_with_the_reference
from broker import Broker
from cards import CARDS, card
from confluent_kafka import Producer as KafkaProducer
from hypothesis import given
from hypothesis import strategies as st
from shop import SHOP, payments
from soaking import SOAKING, times
from test_any_split import SHORT_SPLITS, STREAM, VIEWS, values

from headrace.engine.running import run_engine
from headrace.log import KafkaLog, Log, TopicSettings, records
from headrace.project.settings import Settings
from headrace.testing import Harness, harness
from headrace.testing.harness import to_json
from headrace.testing.strategies import Script, play, scripts

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

OUTAGES = times(1)
CHOSEN = VIEWS if SOAKING else [VIEWS[0], VIEWS[2], VIEWS[4]]
PROJECT = "".join((STREAM + view).format(number=number) for number, view in enumerate(CHOSEN))


def on(broker: Broker, prefix: str) -> Callable[[Path, Callable[[], int]], Log]:
    def open_log(_: Path, clock: Callable[[], int]) -> Log:
        return KafkaLog({"bootstrap.servers": broker.bootstrap}, prefix=prefix, clock=clock)

    return open_log


@contextmanager
def shop_on(broker: Broker, prefix: str) -> Iterator[Harness]:
    with harness(SHOP, partitions=2, open_log=on(broker, prefix)) as h:
        yield h


def test_a_table_of_a_compacted_topic_on_kafka(broker: Broker) -> None:
    prefix = f"{uuid4().hex[:8]}."
    with harness(CARDS, partitions=2, open_log=on(broker, prefix)) as h:
        h.log.change_topic("cards", settings=TopicSettings(compact=True))
        abort_one(broker, f"{prefix}cards")
        for gear in ("short", "long"):
            h.append("cards", [card("a", gear, "gold"), card("b", gear, "gold")], partition=0)
            h.append("cards", [card("c", gear, "gold")], partition=1)
            h.delete("cards", [{"card": "b"}], partition=0)
            h.turn(gear=gear)
            assert {row["card"]: row["holder"] for row in h.rows("cards")} == {"a": gear, "c": gear}
        assert_agrees_with_the_reference(h)
        h.audit()


def abort_one(broker: Broker, topic: str) -> None:
    """Leave records in a topic that no reader may see."""
    producer = KafkaProducer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": f"aborts-{topic}"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(3):
        producer.produce(topic, value=b"aborted", partition=number % 2)
    producer.flush(30)
    producer.abort_transaction(30)


@any_split(2)  # a log on Kafka takes some ten times as long to fill as an embedded one
@given(
    script=scripts(
        values,
        streams=[f"events{number}" for number in range(len(CHOSEN))],
        min_records=4 if SOAKING else 8,
        max_records=8 if SOAKING else 12,
    ),
    chosen=st.sampled_from([Settings(), SHORT_SPLITS]),
    aborted=st.booleans(),
)
def test_the_cut_into_turns_never_shows(
    broker: Broker, script: Script, chosen: Settings, aborted: bool
) -> None:
    prefix = f"{uuid4().hex[:8]}."
    with harness(PROJECT, partitions=2, settings=chosen, open_log=on(broker, prefix)) as h:
        if aborted:
            abort_one(broker, f"{prefix}topic0")
        play(h, script)
        assert_agrees_with_the_reference(h)
        h.audit()


@pytest.mark.parametrize("gear", ["short", "long"])
def test_aborted_records_and_gaps_are_not_counted(broker: Broker, gear: str) -> None:
    prefix = f"{uuid4().hex[:8]}."
    with shop_on(broker, prefix) as h:
        for start in (0, 30):
            h.append("payments", payments(start, 30), partition=0)
            abort_one(broker, f"{prefix}payments")
        keyed = [to_json(row) for row in payments(60, 30)]
        h.log.append("payments", records(keyed, keys=[str(n) for n in range(30)]))
        (report,) = h.turn(gear=gear)
        assert report.records == 90
        assert h.counters("payments")["read"] == 90
        ends = [extent.end_offset for extent in h.log.extents("payments").values()]
        assert sum(ends) > 90 + 6  # those that were aborted, and markers
        assert_agrees_with_the_reference(h)
        h.audit()


@pytest.mark.soak  # an outage, then several
def test_a_broker_that_restarts_is_waited_for(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with shop_on(broker, f"{uuid4().hex[:8]}.") as h:
        reports: list[int] = []
        h.engine.on_turn = lambda report: reports.append(report.records)
        failures: list[BaseException] = []
        stop = threading.Event()

        def run() -> None:
            try:
                run_engine(h.engine, stop)
            except BaseException as error:  # noqa: BLE001 - the test raises it
                failures.append(error)

        def wait_until(done: Callable[[], bool]) -> None:
            deadline = time.monotonic() + 120
            while not done() and time.monotonic() < deadline:
                if failures:
                    raise failures[0]
                time.sleep(0.05)
            assert done()

        def is_read(records: int) -> bool:
            return sum(reports) == records

        def is_told(text: str) -> bool:
            return any(text in message for message in caplog.messages)

        turning = threading.Thread(target=run)
        turning.start()
        try:
            for round in range(OUTAGES):
                h.append("payments", payments(round * 30, 30), partition=0)
                wait_until(partial(is_read, round * 30 + 30))
                broker.stop()
                try:
                    wait_until(lambda: is_told("waits and tries again"))
                finally:
                    broker.start()
                wait_until(lambda: is_told("in reach again"))
                caplog.clear()
            h.append("payments", payments(OUTAGES * 30, 30), partition=1)
            wait_until(partial(is_read, OUTAGES * 30 + 30))
        finally:
            stop.set()
            turning.join()
        assert_agrees_with_the_reference(h)
        h.audit()
