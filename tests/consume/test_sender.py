"""Senders in a real process: interrupted, forked, killed, forgotten; and where records went."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers, lists, none, one_of, text

from headrace.consume import Sender, Sent
from headrace.consume.sending import sender as sender_module
from headrace.consume.sending.outgoing import OutgoingBatch, make_record
from headrace.errors import BufferFull, LogError, Unreachable, UsageError
from headrace.log import EmbeddedLog, Log, Partition, Range
from headrace.log.records import check_records, share_out
from headrace.testing.log.sending import LONG_MS, WatchedLog, wait_until
from headrace.testing.log.suite import values

PARTITION_0 = Partition("t", 0)

SEND_AND_DIE = """
import os, signal, sys
from headrace.consume import Sender
from headrace.log import EmbeddedLog
from headrace.log.embedded.files import OpenFile
OpenFile.sync = lambda file: signal.pause()  # a sync that never ends
sender = Sender(EmbeddedLog(sys.argv[1]), acks=1, linger_ms=1)
sent = [sender.send("t", str(n), partition=0) for n in range(1000)]
assert [future.result(10).offset for future in sent] == list(range(1000))
os.kill(os.getpid(), signal.SIGKILL)
"""

END_WITHOUT_CLOSING = """
import sys
from headrace.consume import Sender
from headrace.log import EmbeddedLog
sender = Sender(EmbeddedLog(sys.argv[1]), linger_ms=0)
sender.send("t", "acknowledged").result(10)
slow = Sender(EmbeddedLog(sys.argv[1]), linger_ms=600_000)
slow.send("t", "handed over")
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t", partitions=1)
    yield log
    log.close()


def sender_threads() -> int:
    return sum(thread.name == "headrace-sender" for thread in threading.enumerate())


def test_a_killed_process_keeps_what_its_futures_said(tmp_path: Path, log: EmbeddedLog) -> None:
    killed = subprocess.run([sys.executable, "-c", SEND_AND_DIE, str(tmp_path)])
    assert killed.returncode == -signal.SIGKILL
    wait_until(lambda: values(log, PARTITION_0) == [str(n).encode() for n in range(1000)])


def test_a_process_that_forgets_its_senders_ends_with_a_warning(
    tmp_path: Path, log: EmbeddedLog
) -> None:
    command = [sys.executable, "-W", "default", "-c", END_WITHOUT_CLOSING, str(tmp_path)]
    ended = subprocess.run(command, timeout=20, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("ResourceWarning: A Sender was not closed") >= 1
    assert "lost 1 record handed over to a Sender that nobody closed" in ended.stderr
    assert values(log, PARTITION_0) == [b"acknowledged"]


def test_a_forgotten_sender_sends_what_it_has_and_is_collected_with_a_warning(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender_module, "IDLE_S", 0.01)
    sender = Sender(log, linger_ms=30)
    future = sender.send("t", "x")
    del sender
    with pytest.warns(ResourceWarning, match="not closed"):  # noqa: PT031 - when it comes is open
        future.result(10)
        wait_until(lambda: sender_threads() == 0)
        gc.collect()
    assert values(log, PARTITION_0) == [b"x"]


def test_an_idle_thread_ends_and_comes_again(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender_module, "IDLE_S", 0.01)
    with Sender(log, linger_ms=0) as sender:
        for n in range(3):
            assert sender.send("t", "x").result(10) == Sent(PARTITION_0, n)
            wait_until(lambda: sender_threads() == 0)
    with Sender(log):
        pass  # one that never sent anything is closed at once


def test_no_record_waits_for_a_thread_that_just_ended(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread gives up again and again, right when the next record comes."""
    monkeypatch.setattr(sender_module, "IDLE_S", 0.0)
    with Sender(log, acks=1, linger_ms=0) as sender:
        for _ in range(300):
            sender.send("t", "x").result(10)


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """Heed SIGINT, which a run that a shell started in the background ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts")
@pytest.mark.parametrize("call", ["close", "flush", "send"])
def test_an_interrupt_leaves_a_sender_that_can_be_closed(log: EmbeddedLog, call: str) -> None:
    watched = WatchedLog(log)
    sender = Sender(cast(Log, watched), linger_ms=0, buffer_bytes=1)
    watched.gate.clear()
    sent = sender.send("t", "x")
    assert watched.begun.wait(10)
    calls = {"close": sender.close, "flush": sender.flush, "send": lambda: sender.send("t", "y")}
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    watched.gate.set()
    sender.close()
    assert sent.result(0) == Sent(PARTITION_0, 0)
    assert values(log, PARTITION_0) == [b"x"]


def test_a_forked_child_has_no_part_in_a_sender(log: EmbeddedLog) -> None:
    sender = Sender(log, linger_ms=LONG_MS)
    sent = sender.send("t", "parent")
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            for use in (lambda: sender.send("t", "child"), sender.flush):
                with pytest.raises(UsageError, match="make a sender here"):
                    use()
            sender.close()  # nothing of it is its own
            with Sender(log) as own:
                own.send("t", "child")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    sender.close()
    assert sent.result(0) == Sent(PARTITION_0, 1)
    assert values(log, PARTITION_0) == [b"child", b"parent"]


def test_a_callback_may_send_but_not_wait(log: EmbeddedLog) -> None:
    told: list[BaseException | None] = []
    done = threading.Event()

    def again(_: Future[Sent]) -> None:
        for use in (sender.flush, sender.close):
            try:
                use()
            except UsageError as error:
                told.append(error)
        done.set()

    def once_more(_: Future[Sent]) -> None:
        sender.send("t", "second").add_done_callback(again)

    def exit_thread(_: Future[Sent]) -> None:
        raise SystemExit

    watched = WatchedLog(log)
    watched.gate.clear()  # until the callbacks are there
    sender = Sender(cast(Log, watched), linger_ms=0)
    sender.send("t", "zeroth").add_done_callback(exit_thread)
    sender.send("t", "first").add_done_callback(once_more)
    watched.gate.set()
    assert done.wait(10)
    assert len(told) == 2
    sender.close()
    assert values(log, PARTITION_0) == [b"zeroth", b"first", b"second"]


def test_a_callback_is_refused_room_at_once(log: EmbeddedLog) -> None:
    watched = WatchedLog(log)
    told: list[str] = []

    def too_much(_: Future[Sent]) -> None:
        try:
            for _ in range(10):
                sender.send("t", "more")
        except BufferFull as error:
            told.append(str(error))

    with Sender(cast(Log, watched), linger_ms=0, buffer_bytes=300) as sender:
        watched.gate.clear()
        sender.send("t", "x").add_done_callback(too_much)
        watched.gate.set()
        wait_until(lambda: bool(told))
    assert "after 0 s" in told[0]


def test_a_flush_gives_up_in_time_and_drops_nothing(log: EmbeddedLog) -> None:
    watched = WatchedLog(log)
    with Sender(cast(Log, watched), linger_ms=LONG_MS) as sender:
        sender.flush()
        watched.gate.clear()
        sender.send("t", "x")
        with pytest.raises(Unreachable, match=r"t: 129 bytes .* after 0.01 s"):
            sender.flush(0.01)
        watched.gate.set()
        sender.flush()
        assert values(log, PARTITION_0) == [b"x"]


def test_a_quiet_topic_is_sent_while_a_busy_one_fills_batches(log: EmbeddedLog) -> None:
    log.create_topic("quiet", partitions=1)
    with Sender(log, linger_ms=1, batch_bytes=200, buffer_bytes=20_000) as sender:
        future = sender.send("quiet", "x")
        deadline = time.monotonic() + 10
        while not future.done() and time.monotonic() < deadline:
            sender.send("t", b"y" * 100)
        assert future.done()


def test_a_closed_log_fails_what_is_sent_to_it(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path)
    log.create_topic("t")
    with Sender(log) as sender:
        log.close()
        with pytest.raises(UsageError, match="this log is closed"):
            sender.send("t", "x").result(10)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"acks": 2}, "acks cannot be 2. Use 0, 1 or 'all'"),
        ({"linger_ms": -1}, "linger_ms cannot be -1"),
        ({"batch_bytes": 0}, "batch_bytes cannot be 0"),
        ({"batch_bytes": 1 << 31}, "Use 1 to"),
        ({"buffer_bytes": 0}, "Use 1 or more"),
        ({"block_ms": -5}, "block_ms cannot be -5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    log: EmbeddedLog, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Sender(log, **settings)


# Where records went.


def batch_of(keys: list[str | None], partition: int | None = None) -> OutgoingBatch:
    batch = OutgoingBatch("t", partition, 0)
    batch.records = [make_record("t", key, "x", None, None)[0] for key in keys]
    return batch


@settings(deadline=None)
@given(
    keys=lists(one_of(none(), text(max_size=3)), min_size=1, max_size=30),
    partitions=integers(1, 5),
    keyless=integers(0, 4),
)
def test_every_record_is_found_where_the_log_puts_it(
    keys: list[str | None], partitions: int, keyless: int
) -> None:
    batch = batch_of(keys)
    table = check_records(batch.table(), topic="t")
    numbered = table.append_column("row", pa.array(range(len(keys))))
    ranges, expected = [], {}
    shares = share_out(numbered, partitions=partitions, keyless=keyless % partitions)
    for number, rows in shares:
        place, first = Partition("t", number), 100 * number
        # As Kafka may: what others appended meanwhile stands in between.
        middle = first + rows.num_rows // 2
        parts = [Range(place, first, middle), Range(place, middle + 7, rows.num_rows + first + 7)]
        ranges += [part for part in parts if part.span]
        offsets = [offset for part in parts for offset in range(part.start, part.end)]
        for row, offset in zip(rows.column("row").to_pylist(), offsets, strict=True):
            expected[row] = Sent(place, offset)
    found = batch.where(ranges, lambda: partitions)
    assert found == [expected[row] for row in range(len(keys))]


def test_an_offset_that_does_not_follow_is_not_guessed() -> None:
    one, two = Partition("t", 0), Partition("t", 1)
    batch = batch_of(["a", "b"])
    assert batch.where([Range(one, 5, 8)], lambda: 2) == [Sent(one)] * 2
    assert batch.where([Range(one, 5, 6), Range(two, 0, 9)], lambda: 2) == [Sent()] * 2
    assert batch.where([], lambda: 2) == [Sent()] * 2
    keyless = batch_of(["a", None])
    assert keyless.where([Range(one, 0, 5), Range(two, 0, 5)], lambda: 2) == [Sent()] * 2


def test_a_log_that_cannot_be_asked_any_more_fails_no_record(log: EmbeddedLog) -> None:
    log.create_topic("wide", partitions=4)
    watched = WatchedLog(log)

    def fail(_: str) -> None:
        raise LogError("out of reach")

    watched.topic = fail  # type: ignore[attr-defined]
    with Sender(cast(Log, watched), linger_ms=LONG_MS) as sender:
        sent = [sender.send("wide", str(n), key=str(n)) for n in range(50)]
    assert {future.result(0) for future in sent} == {Sent()}
    assert sender.status().sent_records == 50
