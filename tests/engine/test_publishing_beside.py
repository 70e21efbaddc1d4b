"""A running engine publishes beside its turns: every record once and in order, whatever happens.

Method: a running engine with a sink in mode `retract`, dead records and a written stream. A reader
folds the sink's topic and refuses a row that comes twice or is retracted before it came, so a
repeat, a gap or a wrong order shows. Faults strike while the next turn is under way.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from soaking import SOAKING
from told import held, held_rows

from headrace import faults
from headrace.engine import reach
from headrace.engine.beside import MAX_TURNS_BEHIND
from headrace.engine.engine import Engine
from headrace.engine.running import run_engine
from headrace.engine.spark.session import start_spark
from headrace.errors import EngineFenced, ProducerFenced, Unreachable
from headrace.observe.status import take_status
from headrace.project.settings import Settings
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark

SECONDS = 120.0
DEFINITIONS = """
CREATE STREAM clicks (k STRING, x INT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS) WITH (topic = 'clicks');
CREATE MATERIALIZED VIEW per_key AS SELECT k, count(*) AS n, sum(x) AS total FROM clicks GROUP BY k;
CREATE SINK out FROM per_key WITH (topic = 'rows', mode = 'retract');
CREATE STREAM doubled WITH (topic = 'doubled.out') AS SELECT k, 2 * x AS y, ts FROM clicks;
"""
OUTBOX_POINTS = ("before_publish", "during_publish", "after_publish")
SINK_POINTS = ("sink_before_append", "sink_after_append")
STREAM_POINTS = ("stream_before_append", "stream_after_append")


class Clicks:
    """Appends clicks, one of three broken."""

    def __init__(self, h: Harness) -> None:
        self._h = h
        self.sent = 0

    def send(self, count: int = 3) -> None:
        for _ in range(count):
            broken = self.sent % 3 == 2
            row = {"k": "ab"[self.sent % 2], "x": self.sent, "ts": "2026-01-01T12:00:00Z"}
            self._h.append("clicks", ["broken" if broken else row], partition=0)
            self.sent += 1


class Running:
    """An engine that runs in a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        self.stop = threading.Event()
        self.failure: BaseException | None = None
        self._engine = engine
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            run_engine(self._engine, self.stop)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.failure = error

    def end(self) -> BaseException | None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the engine does not end"
        return self.failure


@contextmanager
def running(h: Harness) -> Iterator[Running]:
    """Run the engine for as long as the block; it must not fail."""
    found = Running(h.engine)
    try:
        yield found
    finally:
        found.stop.set()
        failure = found.end()
    if failure is not None:
        raise failure


@contextmanager
def sinks(*, partitions: int = 1, settings: Settings | None = None) -> Iterator[Harness]:
    with harness(DEFINITIONS, partitions=partitions, settings=settings) as h:
        yield h


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)


def waiting_rows(h: Harness) -> int:
    with h.engine.tools.store.open() as snapshot:
        return take_status("test", snapshot, h.log, h.engine.settings).sink_rows


def all_read(h: Harness, clicks: Clicks) -> bool:
    return h.counters("clicks").get("read", 0) == clicks.sent


def finish(h: Harness) -> None:
    while h.turn():
        pass


def assert_told_once(h: Harness, clicks: Clicks) -> None:
    """Check what the topics hold against the table and against what was appended."""
    assert held(h, "rows") == held_rows(h, "per_key")
    newest: dict[str, str] = {}
    for record in h.topic("rows"):
        value = json.loads(record["value"])
        change, key = value.pop("_change"), record["key"].decode()
        row = json.dumps(value)
        if change == "insert":
            assert key not in newest, "a row comes that is there already"
            newest[key] = row
        else:
            assert newest.pop(key, None) == row, "what is retracted is not what was told"
    numbers = range(clicks.sent)
    dead = Counter(record["offset"] for record in h.dead("clicks"))
    assert dead == Counter(number for number in numbers if number % 3 == 2)
    doubled = Counter(json.loads(record["value"])["y"] for record in h.topic("doubled.out"))
    assert doubled == Counter(2 * number for number in numbers if number % 3 != 2)
    h.audit()


@pytest.mark.soak
@pytest.mark.parametrize(
    "points",
    [[*OUTBOX_POINTS, *SINK_POINTS, *STREAM_POINTS]]
    + [[point] * 2 for point in (*OUTBOX_POINTS, *SINK_POINTS, *STREAM_POINTS) if SOAKING],
    ids=lambda points: points[-1] if len(set(points)) == 1 else "all",
)
def test_a_crash_while_the_next_turn_is_under_way_changes_nothing(points: list[str]) -> None:
    with sinks() as h:
        clicks = Clicks(h)
        for point in points:  # each but the first on what the one before it left
            folded = threading.Event()

            def crash(folded: threading.Event = folded, point: str = point) -> None:
                faults.arm("after_fold", folded.set)
                clicks.send()
                assert folded.wait(SECONDS), "no turn is taken meanwhile"
                raise faults.Crash(point)

            clicks.send()
            faults.arm(point, crash)
            assert isinstance(Running(h.engine).end(), faults.Crash)
            h.restart()
        finish(h)
        assert_told_once(h, clicks)


def test_a_crash_of_a_turn_while_the_last_one_is_published_changes_nothing() -> None:
    with sinks() as h:
        clicks = Clicks(h)
        crashed = threading.Event()

        def crash() -> None:
            crashed.set()
            raise faults.Crash("after_fold")

        def hold() -> None:
            faults.arm("after_fold", crash)
            clicks.send()
            assert crashed.wait(SECONDS), "no turn is taken meanwhile"

        clicks.send()
        faults.arm("sink_before_append", hold)
        assert isinstance(Running(h.engine).end(), faults.Crash)
        h.restart()
        finish(h)
        assert_told_once(h, clicks)


def test_the_order_is_kept_over_many_turns() -> None:
    with sinks(settings=Settings(split_folds=2, max_turn_records=3)) as h:
        clicks = Clicks(h)
        with running(h):
            for _ in range(12):
                clicks.send()
                time.sleep(0.02)
            until(lambda: all_read(h, clicks))
        assert waiting_rows(h) == 0, "an engine that is stopped has published what it committed"
        assert_told_once(h, clicks)


def test_turns_wait_so_that_few_changes_wait_in_the_store() -> None:
    with sinks(settings=Settings(split_folds=2, max_turn_records=1)) as h:
        clicks = Clicks(h)
        go_on = threading.Event()
        faults.arm("sink_before_append", lambda: go_on.wait(SECONDS) and None)
        clicks.send(12)
        with running(h):
            until(lambda: h.engine.beside.turns_behind > MAX_TURNS_BEHIND)
            time.sleep(0.5)  # time for a turn that should not come
            # The first is on its way; one more than may be behind is committed and waits.
            assert h.engine.units["main"].turn <= MAX_TURNS_BEHIND + 1
            assert 0 < waiting_rows(h) <= 2 * (MAX_TURNS_BEHIND + 1)
            go_on.set()
            until(lambda: all_read(h, clicks))
        assert_told_once(h, clicks)


def test_a_log_out_of_reach_while_publishing_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reach, "FIRST_PAUSE_S", 0.01)
    tries = 0

    def away() -> None:
        nonlocal tries
        tries += 1
        if tries < 4:
            faults.arm("sink_before_append", away)
        raise Unreachable("the log is out of reach.")

    with sinks() as h:
        clicks = Clicks(h)
        faults.arm("sink_before_append", away)
        clicks.send()
        with running(h):
            until(lambda: tries == 4)
            clicks.send()
            until(lambda: all_read(h, clicks) and not waiting_rows(h))
        assert_told_once(h, clicks)
    told = [each.getMessage() for each in caplog.records if "out of reach" in each.getMessage()]
    assert told == ["the log is out of reach. Nothing is lost; the engine waits and tries again."]


def test_what_a_stopped_engine_could_not_publish_the_next_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reach, "FIRST_PAUSE_S", 0.01)
    tried = threading.Event()

    def away() -> None:
        faults.arm("sink_before_append", away)
        tried.set()
        raise Unreachable("the log is out of reach.")

    with sinks() as h:
        clicks = Clicks(h)
        faults.arm("sink_before_append", away)
        clicks.send()
        with running(h):
            assert tried.wait(SECONDS)
        assert waiting_rows(h) > 0
        h.restart()
        assert waiting_rows(h) == 0
        assert_told_once(h, clicks)


def test_an_engine_that_was_taken_over_publishes_no_more() -> None:
    with sinks() as h:
        clicks = Clicks(h)
        newer = Engine(h.project, h.log, h.engine.tools.store, start_spark())
        # Within publishing, when all is committed: the newer one has to publish it.
        faults.arm("sink_before_append", newer.start)
        clicks.send()
        failure = Running(h.engine).end()
        assert isinstance(failure, ProducerFenced | EngineFenced)
        newer.turn()
        newer.close()
        assert_told_once(h, clicks)
