"""What another thread or process, or the disk, does at the worst moment."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import faults
from headrace.errors import DiskFull, LogError, PositionLost, TopicNotFound
from headrace.log import Append, EmbeddedLog, Partition, Range, Topic, TopicSettings, records
from headrace.log.embedded import appender, topics
from headrace.log.embedded import transactions as log_transactions
from headrace.log.embedded.ends import read_ends
from headrace.log.embedded.format import encode_payload
from headrace.log.embedded.listing import segment_path
from headrace.log.embedded.reader import Reader
from headrace.log.embedded.transactions import decisions
from headrace.log.records import check_records
from headrace.testing.log.suite import values

PARTITION_0 = Partition("t", 0)
BOTH = [Partition("t", 0), Partition("t", 1)]


def make_log(path: Path, *, segment_bytes: int = 1 << 20) -> EmbeddedLog:
    log = EmbeddedLog(path, segment_bytes=segment_bytes)
    log.create_topic("t", partitions=2)
    return log


def append_both(log: EmbeddedLog, text: str) -> None:
    log.append_all([Append("t", records([text]), place.number) for place in BOTH])


def stored(log: EmbeddedLog) -> list[list[bytes | None]]:
    return [values(log, place) for place in BOTH]


def sound(log: EmbeddedLog) -> bool:
    return not [segment for segment in log.verify("t") if segment.damages]


@pytest.mark.parametrize("point", ["log_torn", "log_before_acknowledge"])
@pytest.mark.parametrize("together", [False, True])
def test_a_topic_made_anew_under_an_append_is_not_touched_by_it(
    tmp_path: Path, point: str, together: bool
) -> None:
    if together:
        point = {"log_torn": "log_in_transaction"}.get(point, "log_after_decision")
    log, other = make_log(tmp_path), EmbeddedLog(tmp_path)
    append_both(log, "old")
    done = threading.Event()

    def make_anew() -> None:
        other.delete_topic("t")
        make_log(tmp_path)
        append_both(other, "new")
        done.set()

    thread = threading.Thread(target=make_anew)

    def swap() -> None:
        thread.start()
        done.wait(0.3)  # it has to wait where the append holds the lock

    faults.arm(point, swap)
    try:
        if together:
            append_both(log, "late")
        else:
            log.append("t", records(["late"]), partition=0)
    except (LogError, TopicNotFound):
        pass  # it may have lost the race, but not the new topic's records
    thread.join()
    for each in (log, other, EmbeddedLog(tmp_path)):
        assert stored(each) == [[b"new"], [b"new"]]
        assert sound(each)
    append_both(log, "more")
    assert stored(other) == [[b"new", b"more"]] * 2


def test_a_lost_oldest_file_does_not_pass_for_retention(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1)
    for n in range(3):
        log.append("t", records([str(n)]), partition=0)
    log.change_topic("t", settings=TopicSettings(retention_ms=10**9))
    segment_path(tmp_path / "t" / "0", 0).unlink()
    log.maintain()
    assert log.extents("t")[PARTITION_0].first_offset == 0
    assert not sound(log)


def test_a_decision_about_a_topic_that_has_changed_is_forgotten(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append_both(log, "x")
    log.delete_topic("t")
    log.create_topic("t", partitions=1)
    assert len(decisions(tmp_path)) == 1
    log.maintain()
    assert decisions(tmp_path) == []
    assert values(log, PARTITION_0) == []


def test_damage_elsewhere_does_not_fail_an_append(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1)
    log.change_topic("t", settings=TopicSettings(retention_bytes=1 << 30))
    for place in BOTH:
        for n in range(3):
            log.append("t", records([str(n)]), partition=place.number)
    segment_path(tmp_path / "t" / "1", 1).write_bytes(b"no header")
    other = EmbeddedLog(tmp_path, segment_bytes=1)
    other.append("t", records(["3"]), partition=0)
    assert values(other, PARTITION_0) == [b"0", b"1", b"2", b"3"]
    other.maintain()  # says so in the log of the process, and goes on


@pytest.mark.parametrize("withdrawal_fails", [False, True])
def test_a_decision_that_is_written_but_not_synced_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, withdrawal_fails: bool
) -> None:
    log = make_log(tmp_path)
    append_both(log, "one")
    write = log_transactions.write_new_file

    def write_and_fail(path: Path, data: bytes, *, sync: bool) -> None:
        write(path, data, sync=sync)
        raise OSError(5, "Input/output error")

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(log_transactions, "write_new_file", write_and_fail)
        if withdrawal_fails:
            patched.setattr(log_transactions, "_withdraw", fail)
        with pytest.raises(LogError):
            append_both(log, "two")
    expected = [b"one", b"two"] if withdrawal_fails else [b"one"]
    assert stored(EmbeddedLog(tmp_path)) == [expected] * 2
    append_both(log, "three")
    assert stored(log) == [[*expected, b"three"]] * 2


def test_a_failed_sync_of_a_transaction_acknowledges_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.log.embedded import files

    log = make_log(tmp_path)
    append_both(log, "one")
    payload = encode_payload(check_records(records(["slow"]), topic="t", max_bytes=1 << 20))
    written = log._appender(PARTITION_0).write(payload, 1, None)  # and not yet synced

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync_descriptor", fail)
        with pytest.raises(LogError):
            append_both(log, "two")
    with pytest.raises(LogError, match="may be stored, or cut"):
        log._appender(PARTITION_0).make_durable(written)
    assert stored(log) == stored(EmbeddedLog(tmp_path)) == [[b"one"]] * 2


def test_an_append_whose_end_cannot_be_noted_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path)
    log.create_topic("u", partitions=1)
    log.append("t", records(["a"]), partition=0)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(appender, "write_ends", fail)
        with pytest.raises(DiskFull):
            log.append("t", records(["b"]), partition=0)
        # After the decision it is no failure: whoever comes next adopts it.
        log.append_all([Append("t", records(["c"]), 1), Append("u", records(["d"]), 0)])
    log.append("t", records(["b"]), partition=0)
    assert values(log, PARTITION_0) == [b"a", b"b"]
    assert values(EmbeddedLog(tmp_path), Partition("t", 1)) == [b"c"]
    assert values(EmbeddedLog(tmp_path), Partition("u", 0)) == [b"d"]


def test_a_reader_with_old_ends_is_told_that_records_are_gone(tmp_path: Path) -> None:
    folder = tmp_path / "t" / "0"
    log = make_log(tmp_path, segment_bytes=1)
    for n in range(5):
        log.append("t", records([str(n)]), partition=0)
    before = read_ends(folder / "ends")
    assert before is not None
    fresh, warm = Reader(folder, PARTITION_0), Reader(folder, PARTITION_0)
    list(warm.read(Range(PARTITION_0, 0, 5), before, max_batch_records=10))
    log.change_topic("t", settings=TopicSettings(retention_ms=1))
    later = EmbeddedLog(tmp_path, clock=lambda: 1 << 60)
    later.maintain()
    for reader in (fresh, warm):
        for ask in (
            lambda reader=reader: list(
                reader.read(Range(PARTITION_0, 0, 5), before, max_batch_records=10)
            ),
            lambda reader=reader: reader.measure(Range(PARTITION_0, 0, 5), before),
            lambda reader=reader: reader.splits(Range(PARTITION_0, 0, 5), before, max_records=9),
        ):
            with pytest.raises(PositionLost, match="begins at 5"):
                ask()
    assert sound(later)


FIRST = Range(PARTITION_0, 0, 1)
READERS: dict[str, Callable[[EmbeddedLog], Any]] = {
    "extents": lambda log: log.extents("t"),
    "last_sequence": lambda log: log.last_sequence(PARTITION_0, "p"),
    "measure": lambda log: log.measure(FIRST),
    "offset_at": lambda log: log.offset_at(PARTITION_0, 0),
    "read": lambda log: list(log.read(FIRST)),
    "splits": lambda log: log.splits(FIRST, max_records=1),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_topic_that_is_deleted_under_a_reader_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    log, other = make_log(tmp_path), EmbeddedLog(tmp_path)
    append_both(log, "old")
    look = log.topic

    def look_just_before_it_is_deleted(name: str) -> Topic:
        monkeypatch.setattr(log, "topic", look)
        found = look(name)
        other.delete_topic(name)
        return found

    monkeypatch.setattr(log, "topic", look_just_before_it_is_deleted)
    with pytest.raises(TopicNotFound):
        READERS[reader](log)


def test_a_topic_that_is_made_while_it_is_looked_for_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = EmbeddedLog(tmp_path)
    look = topics._partition_folders

    def made_meanwhile(folder: Path) -> list[Path]:
        if not folder.exists():
            log.create_topic("t")
        return look(folder)

    monkeypatch.setattr(topics, "_partition_folders", made_meanwhile)
    assert EmbeddedLog(tmp_path).topic("t").name == "t"
    log.close()
