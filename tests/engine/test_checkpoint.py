"""A checkpoint of the markers saves reading them, and says what the whole topic says.

Method: random markers and readers, answered from a checkpoint and from the whole; a log that counts
what is read of it; and files that are damaged or of another topic.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.engine.time import saving
from headrace.engine.time.checkpoint import Checkpoint, Reader, read_checkpoint, write_checkpoint
from headrace.engine.time.timekeeping import Timekeeper
from headrace.log import EmbeddedLog
from headrace.log.base import Range
from headrace.log.names import TIME_TOPIC
from headrace.model.definitions import Stream
from headrace.testing import harness
from headrace.time.markers import MarkedPartition, MarkerBook, Marks, chain

STREAM = Stream("clicks", (), "clicks", event_time="ts")
PLACES = [MarkedPartition("clicks", "clicks", partition) for partition in (0, 1)]


def book_of(offsets: list[tuple[int, int]]) -> MarkerBook:
    book = MarkerBook()
    marks = [Marks(1, "clicks", "clicks", "idle", None, ((p, o, 10 * o),)) for p, o in offsets]
    for number, value in enumerate(chain([Marks(1), *marks], "")):
        book.add(number, value)
    return book


@settings(deadline=None, max_examples=200)
@given(
    offsets=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20)), max_size=20),
    floors=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    ahead=st.tuples(st.integers(0, 10), st.integers(0, 10)),
    since=st.integers(0, 20),
    later=st.integers(0, 10),
)
def test_who_is_covered_gets_the_same_marks_as_from_the_whole_topic(
    offsets: list[tuple[int, int]],
    floors: tuple[int, int],
    ahead: tuple[int, int],
    since: int,
    later: int,
) -> None:
    whole = book_of(offsets)
    at = dict(zip(PLACES, floors, strict=True))
    checkpoint = Checkpoint(whole.kept(at, since), at, since)
    places = {p: at[p] + more for p, more in zip(PLACES, ahead, strict=True)}
    assert checkpoint.covers(Reader(places, since + later))
    for place, offset in places.items():
        for until in range(len(offsets) + 2):
            asked = (STREAM, place.partition, offset)
            found = [
                (
                    book.fresh(*asked, since=since + later, until=until),
                    book.ahead(*asked, offset + 7, until=until),
                )
                for book in (whole, checkpoint.book)
            ]
            assert found[0] == found[1]


def test_marks_of_a_partition_that_stands_still_are_forgotten_once_known() -> None:
    book = book_of([(0, 3)] * 5_000)
    book.forget({PLACES[0]: 3})
    assert len(book) == 5_000
    book.forget({PLACES[0]: 3}, since=4_991)
    assert len(book) == 10
    assert len(book.fresh(STREAM, 0, 3, since=4_991, until=9_999)) == 10
    book.forget({PLACES[0]: 2}, since=9_999)
    assert len(book) == 10  # somebody has still to pass them
    book.forget({PLACES[0]: 4})
    assert len(book) == 0


def test_who_stands_before_the_floors_or_elsewhere_is_not_covered() -> None:
    whole = book_of([(0, 5), (1, 7)])
    floors = {PLACES[0]: 5}
    checkpoint = Checkpoint(whole.kept(floors, 2), floors, 2)
    assert checkpoint.covers(Reader({PLACES[0]: 5}, 2))
    assert not checkpoint.covers(Reader({PLACES[0]: 4}, 2))
    assert not checkpoint.covers(Reader({PLACES[0]: 5}, 1))
    assert not checkpoint.covers(Reader({PLACES[1]: 9}, 2))  # its marks were left out
    assert checkpoint.covers(Reader({MarkedPartition("new", "new", 0): 0}, 2))  # it has none


class CountingLog(EmbeddedLog):
    """Counts the records that are read of it."""

    records = 0

    def read(self, range: Range, **others: object) -> Iterator[pa.Table]:
        for batch in super().read(range, **others):  # type: ignore[arg-type]
            self.records += batch.num_rows
            yield batch


@pytest.fixture
def log(tmp_path: Path) -> Iterator[CountingLog]:
    log = CountingLog(tmp_path / "log", sync=False)
    yield log
    log.close()


def mark(offset: int) -> Marks:
    return Marks(1, "clicks", "clicks", "idle", None, ((0, offset, 1_000 + offset),))


@pytest.fixture
def path(tmp_path: Path, log: CountingLog) -> Path:
    """Write a checkpoint after 1,000 markers, and three more to the log."""
    time = Timekeeper(log)
    time.begin(1)
    time.write([mark(offset) for offset in range(1_000)])
    path = tmp_path / "state" / "markers.json"
    floors = {PLACES[0]: 999}
    write_checkpoint(path, Checkpoint(time.book.kept(floors, 1_000), floors, 1_000))
    time.write([mark(offset) for offset in range(1_000, 1_003)])
    log.records = 0
    return path


def test_only_what_follows_a_checkpoint_is_read(log: CountingLog, path: Path) -> None:
    checkpoint = read_checkpoint(path)
    assert checkpoint is not None
    time = Timekeeper(log)
    assert time.resume(checkpoint)
    time.read()
    time.cover([Reader({PLACES[0]: 999}, 1_001)])
    assert log.records == 1 + 3
    assert len(time.book) == 1 + 3
    whole = Timekeeper(log)
    whole.read()
    for name in ("end_offset", "epoch", "check", "check_offset", "void"):
        assert getattr(time.book, name) == getattr(whole.book, name)
    time.epoch = 1
    time.write([mark(2_000)])  # the chain goes on
    whole.read()
    assert (whole.book.void, whole.book.end_offset) == (0, time.book.end_offset)


def test_a_reader_from_the_start_makes_the_topic_be_read_from_its_start(
    log: CountingLog, path: Path
) -> None:
    checkpoint = read_checkpoint(path)
    assert checkpoint is not None
    time = Timekeeper(log)
    assert time.resume(checkpoint)
    time.read()
    time.cover([Reader({PLACES[0]: 999}, 1_001), Reader({PLACES[0]: 0}, 0)])
    assert len(time.book) == 1_003
    assert len(time.book.fresh(STREAM, 0, 500, since=0, until=2_000)) == 501


def test_a_checkpoint_of_another_topic_is_not_used(path: Path, tmp_path: Path) -> None:
    checkpoint = read_checkpoint(path)
    assert checkpoint is not None
    other = EmbeddedLog(tmp_path / "other", sync=False)
    assert not Timekeeper(other).resume(checkpoint)
    time = Timekeeper(other)
    time.begin(1)
    assert not Timekeeper(other).resume(checkpoint)  # it is shorter
    time.write([mark(offset + 1) for offset in range(2_000)])
    assert not Timekeeper(other).resume(checkpoint)  # it says something else
    other.close()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"v": 2}', '{"v": 1, "marks": 3}'])
def test_a_checkpoint_that_cannot_be_read_is_none(path: Path, text: str) -> None:
    path.write_text(text)
    assert read_checkpoint(path) is None
    path.unlink()
    assert read_checkpoint(path) is None


PROJECT = """
CREATE STREAM clicks (ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS)
WITH (topic = 'clicks', format = 'json', idle_timeout = '1 minute');
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, count(*) AS n FROM clicks GROUP BY window(ts, '1 minute');
"""


@pytest.mark.spark
def test_an_engine_goes_on_from_its_checkpoint_and_a_new_view_reads_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(saving, "CHECKPOINT_MARKERS", 3)
    with harness(PROJECT, partitions=2) as h:
        for minute in range(8):
            h.append("clicks", [{"ts": f"2026-01-01T12:{5 * minute:02}:30Z"}], partition=0)
            while h.turn():
                pass
            h.wall("+1 minute")  # partition 1 stands still: markers
            while h.turn():
                pass
        saved = read_checkpoint(h.engine.tools.store.state_folder / "markers.json")
        assert saved is not None
        h.restart()
        book = h.engine.planner.time.book
        assert len(book) < 8 < book.end_offset
        h.append("clicks", [{"ts": "2026-01-01T12:02:00Z"}, {"ts": "2026-01-01T13:00:00Z"}])
        while h.turn():
            pass
        h.audit()
        late = [row["ts"] for row in h.late("per_minute")]
        added = "CREATE MATERIALIZED VIEW again AS SELECT window.start AS minute, count(*) AS n "
        h.restart(PROJECT + added + "FROM clicks GROUP BY window(ts, '1 minute');")
        assert len(h.engine.planner.time.book) > 8
        while h.turn():
            pass
        again, before = (
            sorted(h.rows(view), key=lambda row: row["minute"]) for view in ("again", "per_minute")
        )
        assert again == before
        assert [row["ts"] for row in h.late("again")] == late
        h.audit()
        assert h.log.extents(TIME_TOPIC)
