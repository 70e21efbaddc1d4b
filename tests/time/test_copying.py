"""Markers are copied with the topics that they are about, and act on the same records there.

Method: the source begins after offset 0, so a copy numbers its records differently.
"""

from pathlib import Path

import pytest

from headrace.log import EmbeddedLog, Log, Partition, Producer, TopicSettings, records
from headrace.log.copying import copy_topic
from headrace.model.definitions import Stream
from headrace.time.clocks import Mark
from headrace.time.copying import copy_markers
from headrace.time.markers import MarkerBook, Marks, chain

BEGIN = [Marks(7), Marks(7, "s", "t", "idle", marks=((0, 25, 1_000), (1, 10, 2_000)))]
MORE = [Marks(7, "s", "t", "idle", marks=((0, 30, 3_000),)), Marks(7, "x", "other", "idle")]
EVERYTHING = 10**9


def make_source(path: Path) -> EmbeddedLog:
    """Return a log whose topic t has offsets 20 to 30 in partition 0, 0 to 9 in partition 1."""
    now_us = 1_000
    log = EmbeddedLog(path, sync=False, segment_bytes=1, clock=lambda: now_us)
    log.create_topic("t", partitions=2, settings=TopicSettings(retention_ms=1))
    for number in range(30):
        log.append("t", records([str(number)]), partition=0)
        if number == 19:
            now_us = 10**15
            log.append("t", records(["kept"]), partition=0)
            log.maintain()
    for number in range(10):
        log.append("t", records([str(number)]), partition=1)
    return log


def write(log: Log, marks: list[Marks], sequence: int) -> None:
    if all(topic.name != "headrace.time" for topic in log.topics()):
        log.create_topic("headrace.time", partitions=1)
    values = list(chain(marks, book(log).check))
    producer = Producer("headrace.time", 7, sequence)
    log.append("headrace.time", records(values), partition=0, producer=producer)


def book(log: Log) -> MarkerBook:
    from headrace.engine.time.timekeeping import Timekeeper

    time = Timekeeper(log)
    time.read()
    return time.book


def marks(log: Log, partition: int) -> list[Mark]:
    stream = Stream("s", (), "t", event_time="ts")
    return list(book(log).fresh(stream, partition, EVERYTHING, since=0, until=EVERYTHING))


def value_at(log: Log, partition: int, offset: int) -> bytes | None:
    from headrace.log import Range

    place = Partition("t", partition)
    end = log.extents("t")[place].end_offset
    if offset == end:
        return None
    [batch] = list(log.read(Range(place, offset, offset + 1)))
    return batch["value"][0].as_py()  # type: ignore[no-any-return]


def test_markers_act_on_the_same_records_in_a_copy(tmp_path: Path) -> None:
    source, target = make_source(tmp_path / "a"), EmbeddedLog(tmp_path / "b", sync=False)
    write(source, BEGIN, 2)
    copy_topic(source, target, "t")
    assert copy_markers(source, target, ["t"]) == (2, ())
    assert copy_markers(source, target, ["t"]) == (0, ())
    write(source, MORE, 4)
    assert copy_markers(source, target, ["t"]) == (1, ())
    for partition in (0, 1):
        here, there = marks(source, partition), marks(target, partition)
        assert [mark.time_us for mark in here] == [mark.time_us for mark in there]
        assert [value_at(source, partition, mark.offset) for mark in here] == [
            value_at(target, partition, mark.offset) for mark in there
        ]
    assert [mark.offset for mark in marks(target, 0)] != [mark.offset for mark in marks(source, 0)]
    assert book(target).void == 0


def test_a_marker_waits_until_the_records_before_it_are_copied(tmp_path: Path) -> None:
    source, target = make_source(tmp_path / "a"), EmbeddedLog(tmp_path / "b", sync=False)
    write(source, BEGIN, 2)
    copy_topic(source, target, "t")
    # Between the copy of the topic and that of its markers both go on.
    source.append("t", records(["more", "and more"]), partition=1)
    write(source, [Marks(7, "s", "t", "idle", marks=((1, 12, 4_000),))], 3)
    assert copy_markers(source, target, ["t"]) == (2, ())
    copy_topic(source, target, "t")
    assert copy_markers(source, target, ["t"]) == (1, ())
    assert marks(target, 1) == [Mark(1, 10, 2_000), Mark(2, 12, 4_000)]
    # What the source loses later makes no other copy of what is there already.
    source.change_topic("t", partitions=None, settings=TopicSettings(retention_bytes=1))
    source.append("t", records(["kept"]), partition=0)
    source.maintain()
    assert source.extents("t")[Partition("t", 0)].first_offset > 25
    copy_topic(source, target, "t")
    assert copy_markers(source, target, ["t"]) == (0, ())


@pytest.mark.parametrize("why", ["appended", "compacted"])
def test_records_that_are_not_the_same_are_not_taken_for_each_other(
    tmp_path: Path, why: str
) -> None:
    source, target = EmbeddedLog(tmp_path / "a", sync=False), EmbeddedLog(tmp_path / "b")
    for topic in ("t", "other"):
        source.create_topic(topic, partitions=1, settings=TopicSettings(compact=topic == "t"))
        source.append(topic, records(["x"] * 10, keys=["k"] * 10), partition=0)
    write(source, [Marks(7), Marks(7, "s", "t", "idle", marks=((0, 4, 1_000),))], 2)
    write(source, [Marks(7, "x", "other", "idle", marks=((0, 10, 2_000),))], 3)
    for topic in ("t", "other"):
        copy_topic(source, target, topic)
    if why == "appended":
        target.append("t", records(["mine"], keys=["k"]), partition=0)
    else:
        target.compact("t")
    copied, [note] = copy_markers(source, target, ["t", "other"])
    assert copied == 2  # that an engine began, and what it learnt of the other topic
    assert "t/0: the target does not end with the records that were copied there" in note
    assert marks(target, 0) == []


def test_where_an_engine_has_begun_time_is_its_own(tmp_path: Path) -> None:
    source, target = make_source(tmp_path / "a"), EmbeddedLog(tmp_path / "b", sync=False)
    write(source, BEGIN, 2)
    copy_topic(source, target, "t")
    write(target, [Marks(8)], 1)
    copied, [note] = copy_markers(source, target, ["t"])
    assert copied == 0
    assert "copy before the first run" in note
    assert len(book(target)) == 0


def test_without_markers_there_is_nothing_to_copy(tmp_path: Path) -> None:
    source, target = make_source(tmp_path / "a"), EmbeddedLog(tmp_path / "b", sync=False)
    assert copy_markers(source, target, ["t"]) == (0, ())
    assert [topic.name for topic in target.topics()] == []
