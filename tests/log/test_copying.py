"""Topics are copied between logs: embedded to embedded, to Kafka, and back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.consume import find_group, reset_group
from headrace.consume.copying import copy_groups
from headrace.errors import UsageError
from headrace.log import EmbeddedLog, Log, Partition, TopicSettings, records
from headrace.log.copying import ARRIVAL_HEADER, copy_topic
from headrace.testing.log.suite import rows

from .conftest import MakeKafkaLog

PLACES = [Partition("t", number) for number in range(3)]
COLUMNS = ("arrival", "key", "value", "headers")


def make_source(path: Path) -> EmbeddedLog:
    """Return a log whose topic begins after 0: retention took some."""
    times_us = iter(range(1_700_000_000_000_007, 1 << 62, 1_003))
    log = EmbeddedLog(path, sync=False, segment_bytes=300, clock=lambda: next(times_us))
    log.create_topic("t", partitions=3, settings=TopicSettings(retention_bytes=1_000))
    for n in range(40):
        headers = [None, [("h", b"1"), ("h", None)], {}, {"x": "y"}]
        batch = records(
            [f"{n}-{i}" if i else None for i in range(4)],
            keys=["a", None, "b", b""],
            headers=headers,
        )
        log.append("t", batch, partition=n % 2)
    return log


def content(log: Log, *, columns: tuple[str, ...] = COLUMNS) -> list[list[tuple[object, ...]]]:
    return [[tuple(row[name] for name in columns) for row in rows(log, place)] for place in PLACES]


def test_a_copy_has_the_same_records_with_their_arrivals(tmp_path: Path) -> None:
    source, target = make_source(tmp_path / "a"), EmbeddedLog(tmp_path / "b", sync=False)
    assert source.extents("t")[PLACES[0]].first_offset > 0
    told: list[int] = []
    found = copy_topic(source, target, "t", on_progress=told.append)
    assert found.records == sum(told) == sum(len(part) for part in content(source))
    assert found.notes == ()
    assert content(target) == content(source)
    assert target.topic("t") == source.topic("t")
    # Again, it brings only what is new.
    source.append("t", records(["new"], keys=["k"]), partition=2)
    assert copy_topic(source, target, "t").records == 1
    assert copy_topic(source, target, "t").records == 0
    assert content(target) == content(source)


def test_a_copy_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    source, target = make_source(tmp_path / "a"), EmbeddedLog(tmp_path / "b", sync=False)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            copy_topic(source, target, "t", on_progress=interrupt)
    copy_topic(source, target, "t")
    assert content(target) == content(source)


def test_what_retention_took_meanwhile_is_told(tmp_path: Path) -> None:
    source, target = make_source(tmp_path / "a"), EmbeddedLog(tmp_path / "b", sync=False)
    copy_topic(source, target, "t")
    for n in range(40):
        source.append("t", records([f"later {n}" * 5]), partition=0)
    (note,) = copy_topic(source, target, "t").notes
    assert note.startswith("t/0: records from offset")
    assert note.endswith("were removed from the source before they could be copied")


def test_a_topic_that_is_no_copy_is_left_alone(tmp_path: Path) -> None:
    source, target = make_source(tmp_path / "a"), EmbeddedLog(tmp_path / "b", sync=False)
    target.create_topic("t", partitions=2)
    target.append("t", records(["mine"]), partition=1)
    with pytest.raises(UsageError, match="t: it has 3 partitions here and 2 there"):
        copy_topic(source, target, "t")
    target.delete_topic("t")
    target.create_topic("t", partitions=3)
    target.append("t", records(["mine"]), partition=1)
    with pytest.raises(UsageError, match="that were not copied from here"):
        copy_topic(source, target, "t")
    assert [len(part) for part in content(target)] == [0, 1, 0]


@pytest.mark.parametrize("position", ["start", "middle", "end"])
def test_offsets_of_groups_are_translated(
    tmp_path: Path, make_kafka_log: MakeKafkaLog, position: str
) -> None:
    source = make_source(tmp_path / "a")
    extents = source.extents("t")
    wanted = {
        place: {"start": first, "middle": (first + end) // 2, "end": end}[position]
        for place, (first, end) in extents.items()
    }
    reset_group(source, "g", wanted)
    makers: list[Callable[[], EmbeddedLog]] = [
        lambda: EmbeddedLog(tmp_path / "b", sync=False),
        make_kafka_log,  # type: ignore[list-item]
    ]
    for make in makers:
        target = make()
        copy_topic(source, target, "t")
        (done,) = copy_groups(source, target, {"t"})
        assert done == {"group": "g", "offsets": 3, "left_out": []}
        for place, offset in find_group(target, "g").offsets.items():
            left = [row["value"] for row in rows(source, place, wanted[place])]
            assert [row["value"] for row in rows(target, place, offset)] == left


def test_to_kafka_and_back_nothing_is_lost(tmp_path: Path, make_kafka_log: MakeKafkaLog) -> None:
    source, kafka = make_source(tmp_path / "a"), make_kafka_log()
    found = copy_topic(source, kafka, "t")
    assert found.notes == (f"t: arrivals are in the header {ARRIVAL_HEADER}; Kafka stamps its own",)
    plain = ("key", "value")
    assert content(kafka, columns=plain) == content(source, columns=plain)
    kafka.append("t", records(["there"], keys=["k"], headers=[{"n": "1"}]), partition=2)
    back = EmbeddedLog(tmp_path / "back", sync=False)
    assert copy_topic(kafka, back, "t").records == found.records + 1
    empty_is_null = [[(*row[:3], row[3] or None) for row in part] for part in content(source)]
    (there,) = content(kafka)[2]
    assert content(back) == [*empty_is_null[:2], [there]]
