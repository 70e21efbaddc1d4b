"""The log's contract: how far an append goes before it returns, and senders over it.

Method for senders: the log is wrapped in one that counts appends, holds them up or refuses them, so
that no test depends on how long something takes.
"""

# ruff: noqa: D102 (the name of a test is its sentence)

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from headrace.consume.sending.outgoing import RECORD_OVERHEAD_BYTES
from headrace.consume.sending.sender import Sender, Sent
from headrace.errors import BufferFull, DiskFull, RecordTooLarge, TopicNotFound, UsageError
from headrace.log.base import MAX_RECORD_BYTES, Acks, Appended, Log, Partition, Producer
from headrace.log.records import DEALT_RECORDS, records
from headrace.testing.log.suite import LogSuite, rows, values

__all__ = ["SendingTests", "WatchedLog", "wait_until"]

PATIENCE_S = 10.0
LONG_MS = 600_000  # longer than any test: such a batch is sent for another reason


def wait_until(holds: Callable[[], bool]) -> None:
    """Return once something holds; fail if it does not for PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s"
        time.sleep(0.002)


class WatchedLog:
    """A log whose appends are counted, wait while `gate` is closed, and fail for some topics."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()
        self.failing: dict[str, Exception] = {}
        self.appends: list[tuple[str, int | None, int, Acks]] = []

    def append(self, topic: str, table: Any, **options: Any) -> Appended:
        """Append as the log does, when the gate is open."""
        self.begun.set()
        assert self.gate.wait(PATIENCE_S)
        self.appends.append((topic, options["partition"], table.num_rows, options["acks"]))
        if topic in self.failing:
            raise self.failing[topic]
        return self._log.append(topic, table, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def _watched(log: Log) -> tuple[WatchedLog, Log]:
    watched = WatchedLog(log)
    return watched, cast(Log, watched)


class SendingTests(LogSuite):
    """Acknowledgements and senders."""

    def test_what_is_written_is_visible_soon(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=2)
        other = self.make_log(path)
        for n in range(20):
            done = log.append("t", records([f"{n}-a", f"{n}-b"]), partition=1, acks=1)
            assert sum(each.span for each in done.ranges) == 2
        expected = [f"{n}-{which}".encode() for n in range(20) for which in "ab"]
        wait_until(lambda: values(log, Partition("t", 1)) == expected)
        wait_until(lambda: values(other, Partition("t", 1)) == expected)
        other.close()

    def test_what_is_written_is_durable_once_the_log_is_closed(self, log: Log, path: Path) -> None:
        log.create_topic("t", partitions=3)
        keys = [str(n) for n in range(50)]
        log.append("t", records(keys, keys=keys), acks=1)
        log.close()
        again = self.make_log(path)
        found = [value for place in again.extents("t") for value in values(again, place)]
        assert sorted(found, key=str) == sorted((key.encode() for key in keys), key=str)
        again.close()

    def test_written_and_durable_appends_keep_their_order(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        ways: list[Acks] = [1, 1, "all", 1, "all", "all", 1, "all"]
        for n, acks in enumerate(ways):
            log.append("t", records([str(n)]), partition=0, acks=acks)
        assert values(log, Partition("t", 0)) == [str(n).encode() for n in range(len(ways))]

    def test_other_acknowledgements_are_refused(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        with pytest.raises(UsageError, match="t: acks cannot be 0 here"):
            log.append("t", records(["x"]), acks=0)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="'p' asks for acks=1"):
            log.append("t", records(["x"]), partition=0, producer=Producer("p", 1, 1), acks=1)
        assert values(log, Partition("t", 0)) == []

    # Senders.

    @pytest.mark.parametrize("acks", [0, 1, "all"])
    def test_what_was_sent_is_there_once_the_sender_is_closed(
        self, log: Log, acks: Literal[0, 1, "all"]
    ) -> None:
        log.create_topic("t", partitions=3)
        watched, seen = _watched(log)
        with Sender(seen, acks=acks, linger_ms=LONG_MS) as sender:
            sent = [sender.send("t", str(n), key=str(n % 7)) for n in range(500)]
            assert all(future.done() for future in sent) == (acks == 0)
            assert sender.status().buffered_records == 500
        assert {options[3] for options in watched.appends} == {acks or 1}
        wait_until(lambda: sum(len(rows(log, place)) for place in log.extents("t")) == 500)
        by_place = {place: rows(log, place) for place in log.extents("t")}
        for n, future in enumerate(sent):
            place, offset = future.result(0)
            if acks == 0:
                assert (place, offset) == (None, None)
            else:
                assert place is not None
                (found,) = [row for row in by_place[place] if row["offset"] == offset]
                assert (found["value"], found["key"]) == (b"%d" % n, b"%d" % (n % 7))
        assert sender.status() == (0, 0, 32 << 20, 500, 0)

    def test_many_without_a_key_are_found_where_they_were_dealt_out_to(self, log: Log) -> None:
        log.create_topic("t", partitions=4)
        with Sender(log, linger_ms=LONG_MS) as sender:
            sent = [sender.send("t", str(n)) for n in range(DEALT_RECORDS + 1)]
        found = {
            Sent(place, row["offset"]): row["value"]
            for place in log.extents("t")
            for row in rows(log, place)
        }
        assert [found[future.result(0)] for future in sent] == [b"%d" % n for n in range(len(sent))]

    def test_records_keep_their_order_however_they_are_sent(self, log: Log) -> None:
        log.create_topic("t", partitions=2)
        ways: list[dict[str, Any]] = [{"key": "21"}, {"partition": 0}, {"partition": 1}, {}]
        with Sender(log, linger_ms=1, batch_bytes=2_000) as sender:
            sent = [
                sender.send("t", str(n), **ways[n * n * 7 % 11 % len(ways)]) for n in range(400)
            ]
        places = [future.result(0) for future in sent]
        for number in (0, 1):
            mine = [n for n, sent in enumerate(places) if sent.partition == Partition("t", number)]
            assert values(log, Partition("t", number)) == [str(n).encode() for n in mine]
            offsets = [places[n].offset for n in mine]
            assert offsets == [row["offset"] for row in rows(log, Partition("t", number))]

    def test_keys_values_and_headers_are_sent_as_they_are(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        with Sender(log) as sender:
            sender.send("t", b"\x00\xff", key="k", headers={"ü": "ä"})
            sender.send("t", None, key=b"")
            sender.send("t", "ü", headers=[("n", b"1"), ("n", None)])
        found = [(row["key"], row["value"], row["headers"]) for row in rows(log, Partition("t", 0))]
        assert found == [
            (b"k", b"\x00\xff", [{"name": "ü", "value": "ä".encode()}]),
            (b"", None, None),
            (None, "ü".encode(), [{"name": "n", "value": b"1"}, {"name": "n", "value": None}]),
        ]

    def test_many_sends_are_few_appends(self, log: Log) -> None:
        log.create_topic("a", partitions=4)
        log.create_topic("b", partitions=1)
        watched, seen = _watched(log)
        with Sender(seen, linger_ms=LONG_MS) as sender:
            for n in range(1000):
                sender.send("a", str(n), key=str(n))
                sender.send("b", str(n), partition=0)
            assert watched.appends == []
            sender.flush()
            assert sorted(each[:3] for each in watched.appends) == [
                ("a", None, 1000),
                ("b", 0, 1000),
            ]

    def test_a_full_batch_does_not_linger(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        watched, seen = _watched(log)
        size = 100 + RECORD_OVERHEAD_BYTES
        with Sender(seen, linger_ms=LONG_MS, batch_bytes=10 * size) as sender:
            sent = [sender.send("t", b"x" * 100) for _ in range(35)]
            for future in sent[:30]:
                future.result(PATIENCE_S)
            assert [count for _, _, count, _ in watched.appends] == [10, 10, 10]
            assert not sent[30].done()

    def test_a_batch_is_sent_when_it_has_lingered(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        with Sender(log, linger_ms=1) as sender:
            for n in range(3):
                assert sender.send("t", str(n)).result(PATIENCE_S).partition == Partition("t", 0)

    def test_a_full_buffer_makes_the_sender_wait_and_then_refuse(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        watched, seen = _watched(log)
        size = 100 + RECORD_OVERHEAD_BYTES
        with Sender(seen, linger_ms=LONG_MS, buffer_bytes=10 * size, block_ms=20) as sender:
            watched.gate.clear()
            sent = [sender.send("t", b"x" * 100) for _ in range(10)]
            with pytest.raises(BufferFull, match=r"t: no room for 228 bytes after 0.02 s: 2280 of"):
                sender.send("t", b"y" * 100)
            assert sender.status() == (10, 10 * size, 10 * size, 0, 0)
            watched.gate.set()
            for future in sent:
                future.result(PATIENCE_S)
            sender.send("t", b"z" * 100)
        assert values(log, Partition("t", 0)) == [b"x" * 100] * 10 + [b"z" * 100]

    def test_who_waits_for_room_goes_on_when_there_is_some(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        watched, seen = _watched(log)
        size = 100 + RECORD_OVERHEAD_BYTES
        with Sender(seen, linger_ms=LONG_MS, buffer_bytes=3 * size) as sender:
            watched.gate.clear()
            threading.Timer(0.05, watched.gate.set).start()
            for n in range(50):
                sender.send("t", b"%100d" % n)
                assert sender.status().buffered_bytes <= 3 * size
        assert values(log, Partition("t", 0)) == [b"%100d" % n for n in range(50)]

    def test_a_failed_batch_fails_its_own_records_only(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        log.create_topic("full", partitions=1)
        watched, seen = _watched(log)
        watched.failing["full"] = DiskFull("full: no space left.")
        with Sender(seen) as sender:
            good = [sender.send("t", str(n)) for n in range(5)]
            bad = [sender.send("full", str(n)) for n in range(5)]
            missing = sender.send("missing", "x")
            nowhere = sender.send("t", "x", partition=9)
            sender.flush()
            for future in bad:
                with pytest.raises(DiskFull, match="no space left"):
                    future.result(0)
            with pytest.raises(TopicNotFound):
                missing.result(0)
            with pytest.raises(UsageError):
                nowhere.result(0)
            del watched.failing["full"]
            bad = [sender.send("full", "again")]
        assert [future.exception(0) for future in (*good, *bad)] == [None] * 6
        assert sender.status()[3:] == (6, 7)
        assert values(log, Partition("full", 0)) == [b"again"]

    def test_failures_nobody_waits_for_are_counted_and_logged(
        self, log: Log, caplog: pytest.LogCaptureFixture
    ) -> None:
        log.create_topic("t", partitions=1)
        with Sender(log, acks=0, linger_ms=0) as sender:
            for n in range(20):
                assert sender.send("missing", str(n)).result(0) == Sent()
                sender.flush()
            sender.send("t", "x")
        assert sender.status()[3:] == (1, 20)
        lines = [each.getMessage() for each in caplog.records if each.name == "headrace.log"]
        assert len(lines) == 2  # the first at once, the others together
        assert lines[0].startswith("lost 1 record sent with acks=0 that could not be appended")
        assert "missing" in lines[0]
        assert lines[1].startswith("lost 19 records")

    def test_a_record_that_cannot_be_sent_is_refused_at_once(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        with Sender(log, linger_ms=LONG_MS) as sender:
            kept = sender.send("t", b"x" * (MAX_RECORD_BYTES - 1), key=b"k")
            with pytest.raises(RecordTooLarge, match=f"{MAX_RECORD_BYTES + 1} bytes"):
                sender.send("t", b"x" * (MAX_RECORD_BYTES - 4), key=b"k", headers={"ü": "xy"})
            wrong: list[Any] = [
                {"value": 7},
                {"value": "\ud800"},
                {"value": "x", "key": 1.5},
                {"value": "x", "headers": {b"n": "x"}},
                {"value": "x", "headers": {"\ud800": "x"}},
                {"value": "x", "headers": ["n"]},
            ]
            for each in wrong:
                with pytest.raises(UsageError, match="t: cannot send this record"):
                    sender.send("t", **each)
        assert kept.result(0).partition == Partition("t", 0)
        assert len(values(log, Partition("t", 0))) == 1

    def test_several_threads_share_a_sender(self, log: Log) -> None:
        log.create_topic("t", partitions=2)
        with Sender(log, linger_ms=1, batch_bytes=4_000, buffer_bytes=20_000) as sender:

            def send(thread: int) -> None:
                for n in range(200):
                    sender.send("t", f"{thread}-{n}", key=str(thread))

            threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = [value for place in log.extents("t") for value in values(log, place) if value]
        for number in range(4):
            mine = [value for value in found if value.startswith(b"%d-" % number)]
            assert mine == [b"%d-%d" % (number, n) for n in range(200)]

    def test_a_closed_sender_takes_no_more(self, log: Log) -> None:
        log.create_topic("t", partitions=1)
        watched, seen = _watched(log)
        size = 1 + RECORD_OVERHEAD_BYTES
        sender = Sender(seen, buffer_bytes=size)
        watched.gate.clear()
        refused: list[UsageError] = []
        sender.send("t", "x")
        assert watched.begun.wait(PATIENCE_S)

        def wait_for_room() -> None:
            try:
                sender.send("t", "y")
            except UsageError as error:
                refused.append(error)

        waiting = threading.Thread(target=wait_for_room)
        waiting.start()
        closing = threading.Thread(target=sender.close)
        closing.start()
        waiting.join(PATIENCE_S)
        watched.gate.set()
        closing.join(PATIENCE_S)
        assert len(refused) == 1
        sender.close()
        with pytest.raises(UsageError, match="closed"):
            sender.send("t", "z")
        assert values(log, Partition("t", 0)) == [b"x"]
