"""Duplicates by unique id, in the engine: cuts, gears and crashes never show, nothing is left.

Method: random logs of few ids are turned in random pieces, in both gears, with crashes; all sets
and counters equal the reference's. State is lost, damaged, shared between units and given up, and
afterwards the folder holds what the manifests name and nothing else.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from agreement import any_split, assert_agrees_with_the_reference, rich_scripts
from crashing import crash_at_every_point
from hypothesis import given
from hypothesis import strategies as st

from headrace import faults
from headrace.engine.gears import unique_tasks
from headrace.engine.gears.uniqueness import Memory
from headrace.errors import DiskFull, EngineError, StateDamaged
from headrace.ledger.entries import MAIN
from headrace.observe.status import OperatorStatus, take_status
from headrace.operators.state import Run, Shards, StateFolder
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.testing import Harness, harness
from headrace.testing.harness import Value
from headrace.testing.strategies import TURN_POINTS, Script, play
from headrace.time.clocks import NEVER

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAYMENTS = """
CREATE STREAM payments (
  id STRING NOT NULL, card STRING, n BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 5 SECONDS
) WITH (unique = 'id', unique_within = '20 seconds', duplicates = 'topic');
"""
PER_MINUTE = """
CREATE MATERIALIZED VIEW per_minute AS
SELECT window.start AS minute, card, count(*) AS n FROM payments
GROUP BY window(ts, '1 minute'), card;
"""
RATIOS = "CREATE MATERIALIZED VIEW ratios AS SELECT id, 100 / n AS share FROM payments;"
NUMBERED = """
CREATE STREAM numbered (
  id BIGINT NOT NULL, ts TIMESTAMP NOT NULL, WATERMARK FOR ts AS ts
) WITH (unique = 'id', unique_within = '7 seconds');
CREATE MATERIALIZED VIEW numbers AS SELECT id, count(*) AS n FROM numbered GROUP BY id;
"""
SHOP = PAYMENTS + PER_MINUTE + RATIOS


def payments(numbers: range, *, every: int = 7) -> list[Value]:
    """Return payments, one a second; an id comes again after `every` of them."""
    return [
        {
            "id": f"p{number % every}",
            "card": f"c{number % 3}",
            "n": number,
            "ts": NOON + timedelta(seconds=number),
        }
        if number % 11 != 7
        else f"broken {number}"
        for number in numbers
    ]


def append(h: Harness, start: int, count: int, *, every: int = 7) -> None:
    for partition in (0, 1):
        numbers = range(start + partition * 1000, start + partition * 1000 + count)
        h.append("payments", payments(numbers, every=every), partition=partition)


def state_files(h: Harness) -> set[str]:
    folder = h.folder / "store.duckdb.state"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def named_files(h: Harness) -> set[str]:
    with h.engine.tools.store.open() as snapshot:
        return {run.file for runs in snapshot.manifests().values() for run in runs}


def assert_nothing_is_left_behind(h: Harness) -> None:
    h.restart()
    assert state_files(h) == named_files(h) != set()


def values(event_time: datetime) -> st.SearchStrategy[Value]:
    good = st.fixed_dictionaries(
        {"id": st.sampled_from(["1", "2", "3", "4"]), "ts": st.just(event_time.isoformat())},
        optional={"card": st.sampled_from(["a", "b"]), "n": st.sampled_from([1, 2] * 10 + [0])},
    )
    broken: list[Value] = ["{", None, '{"ts": "2026-01-01T12:00:00Z"}']
    return st.one_of(good, good, good, good, good, st.sampled_from(broken))


@pytest.mark.parametrize(
    "chosen", [Settings(), Settings(split_records=8, seed_records=5)], ids=["whole", "split"]
)
@any_split(1, soaked=2)
@given(
    script=rich_scripts(values, streams=["payments", "numbered"], min_records=15, max_records=30)
)
def test_the_cut_into_turns_never_shows(script: Script, chosen: Settings) -> None:
    with harness(SHOP + NUMBERED, partitions=2, settings=chosen) as h:
        play(h, script)
        assert_agrees_with_the_reference(h)
        h.restart()
        assert state_files(h) == named_files(h)


def test_ids_that_are_forgotten_too_early_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 20)
        h.turn()
        # The mutation: a restart begins without what was remembered.
        h.engine.units[MAIN].manifests.clear()
        append(h, 20, 20)
        h.turn()
        with pytest.raises(AssertionError):
            assert_agrees_with_the_reference(h)


@pytest.mark.soak
@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_crash_at_any_step_changes_nothing_and_leaves_no_file(gear: str) -> None:
    # In a long turn tasks write the files, in processes where no fault point is armed.
    points = [*TURN_POINTS, "state_before_rename"] if gear == "short" else TURN_POINTS
    with harness(SHOP, partitions=2) as h:

        def check_files() -> None:
            assert state_files(h) == named_files(h)

        crash_at_every_point(
            h,
            points,
            lambda number: append(h, number * 15, 12),
            gear=gear,
            after_restart=check_files,
        )
        assert_nothing_is_left_behind(h)
        h.audit()


def test_the_gears_go_on_with_each_others_state() -> None:
    with harness(SHOP, partitions=2) as h:
        for round, gear in enumerate(["short", "long", "short", "long", "long", "short"]):
            append(h, round * 15, 15)
            h.turn(gear=gear)
        assert_agrees_with_the_reference(h)
        assert h.audit().counters
        assert_nothing_is_left_behind(h)


def test_a_duplicate_is_kept_with_its_reason_if_asked() -> None:
    with harness(PAYMENTS + PER_MINUTE, partitions=1) as h:
        h.append("payments", payments(range(3), every=2))
        h.turn()
        (found,) = h.duplicates("payments")
        assert found["offset"] == 2
        assert found["reason"] == (
            "duplicate: a record with the same id stands before it in the partition, and the "
            "clock has not moved on by more than 0:00:20 since"
        )
        counted = h.counters("payments")
        assert [counted[name] for name in ("read", "accepted", "duplicate")] == [3, 2, 1]


def test_duplicates_are_only_counted_by_default() -> None:
    with harness(NUMBERED, partitions=1) as h:
        h.append("numbered", [{"id": 1, "ts": NOON}, {"id": 1, "ts": NOON}])
        h.turn()
        assert h.duplicates("numbered") == []
        assert h.rows("numbers") == [{"id": 1, "n": 1}]
        assert h.counters("numbered")["duplicate"] == 1
        h.audit()


def test_a_duplicate_moves_the_clock() -> None:
    with harness(PAYMENTS + PER_MINUTE, partitions=1) as h:
        late = {"id": "other", "ts": NOON}
        first = {"id": "same", "ts": NOON + timedelta(minutes=2)}
        h.append("payments", [first, first | {"ts": NOON + timedelta(minutes=2, seconds=10)}])
        h.append("payments", [first | {"ts": NOON + timedelta(minutes=9)}])
        h.append("payments", [first | {"ts": NOON + timedelta(minutes=4)}])
        h.append("payments", [late], arrival=NOON + timedelta(minutes=10))
        h.turn()
        # The third is a duplicate by its clock, 12:02:10, and moves the clock to 12:09.
        assert [row["offset"] for row in h.duplicates("payments")] == [1, 2]
        assert [row["id"] for row in h.late("per_minute")] == ["same", "other"]
        assert_agrees_with_the_reference(h)


def test_state_stays_as_small_as_its_horizon() -> None:
    with harness(PAYMENTS + PER_MINUTE, partitions=1) as h:
        for turn in range(12):
            numbers = range(turn * 60, turn * 60 + 60)
            h.append("payments", payments(numbers, every=10**6))
            h.turn()
        (runs,) = h.engine.units[MAIN].manifests.values()
        # 20 seconds are remembered; what goes is what had expired when the last turn began.
        assert sum(run.rows for run in runs) <= 2 * 60 + 20
        assert len(state_files(h)) == len(runs) <= 3
        assert_agrees_with_the_reference(h)


def test_status_shows_what_is_remembered() -> None:
    with harness(PAYMENTS + PER_MINUTE, partitions=1) as h:
        h.append("payments", payments(range(6)))
        h.turn()
        with h.engine.tools.store.open() as snapshot:
            status = take_status("test", snapshot, h.log, h.engine.settings)
            # With a second partition, records without a key may stand apart from their duplicates.
            assert status.warnings == ()
            h.log.change_topic("payments", partitions=2)
            (warning,) = take_status("test", snapshot, h.log, h.engine.settings).warnings
        assert "6 without a key" in warning
        (found,) = status.operators
        (file,) = (h.folder / "store.duckdb.state").iterdir()
        size = file.stat().st_size
        assert found == OperatorStatus("deduplicate", "payments", MAIN, 6, size, 1)


@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_view_that_is_set_aside_goes_on_with_what_was_remembered(
    gear: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = RATIOS.replace("100 / n", "100 / (n - 1) + 100 / (n - 2) + 100 / (n - 3)")
    chosen = Settings(probe_jobs=1)
    with harness(PAYMENTS + PER_MINUTE + broken, partitions=2, settings=chosen) as h:
        h.append("payments", payments(range(10, 20)), partition=0)
        h.turn(gear=gear)
        failing = [{"id": f"f{n}", "n": n, "ts": NOON + timedelta(seconds=20)} for n in range(4)]
        h.append("payments", failing, partition=0)
        h.append("payments", payments(range(20, 30)), partition=0)
        h.turn(gear=gear)
        assert "view ratios is set aside" in caplog.text
        assert_agrees_after_more(h, gear)


def test_an_edited_view_is_built_with_ids_of_its_own_and_they_go_when_it_is_swapped_in() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 25)
        h.turn()
        h.restart(PAYMENTS + PER_MINUTE + RATIOS.replace("100 / n", "200 / n"))
        assert len(h.engine.units) == 2
        assert_agrees_after_more(h, "short")


def test_an_edited_horizon_is_a_new_version_of_the_stream() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 25)
        h.turn()
        h.restart(SHOP.replace("20 seconds", "4 seconds"))
        assert_agrees_after_more(h, "short")


def assert_agrees_after_more(h: Harness, gear: str) -> None:
    append(h, 40, 20)
    while h.turn(gear=gear):
        pass
    assert list(h.engine.units) == [MAIN]
    assert state_files(h) == named_files(h)
    append(h, 70, 20)
    while h.turn():
        pass
    assert_agrees_with_the_reference(h)
    h.audit()
    assert_nothing_is_left_behind(h)


def test_a_stream_that_is_no_longer_unique_leaves_no_state() -> None:
    plain = SHOP.replace(
        "WITH (unique = 'id', unique_within = '20 seconds', duplicates = 'topic')", ""
    )
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 25)
        h.turn()
        h.restart(plain)
        while h.turn():
            pass
        assert state_files(h) == set()
        assert_agrees_with_the_reference(h)


def test_a_lost_store_is_built_anew_and_the_old_state_is_removed() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 25)
        h.turn()
        old = state_files(h)
        h.lose_store()
        h.restart()
        assert state_files(h) == set() != old
        while h.turn(max_records=13):
            pass
        assert_agrees_with_the_reference(h)
        h.audit()


@pytest.mark.parametrize("gear", ["short", "long"])
@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_state_that_is_gone_or_damaged_stops_the_turn_and_names_the_file(
    gear: str, harm: str
) -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 25)
        h.turn()
        (name,) = state_files(h)
        path = h.folder / "store.duckdb.state" / name
        sound = path.read_bytes()
        if harm == "missing":
            path.unlink()
        else:
            at = sound.index(b"headrace.run") + 600
            path.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
        h.restart()
        append(h, 25, 10)
        with pytest.raises(StateDamaged, match=name):
            h.turn(gear=gear)
        h.lose_store()
        h.restart()
        while h.turn(gear=gear):
            pass
        assert_agrees_with_the_reference(h)


def test_a_turn_that_fails_leaves_no_state_behind() -> None:
    def fail() -> None:
        raise EngineError("it fails")

    with harness(SHOP, partitions=2) as h:
        append(h, 0, 25)
        h.turn()
        points = ["after_fold", "after_stage", "before_commit", "after_commit"]
        for number, point in enumerate(points):
            before = state_files(h)
            append(h, 25 + 10 * number, 10)
            faults.arm(point, fail)
            with pytest.raises(EngineError, match="it fails"):
                h.turn()
            # A commit whose answer got lost was made all the same, and names its files.
            assert state_files(h) == named_files(h), point
            assert (state_files(h) == before) == (point != "after_commit"), point
            h.restart()
            while h.turn():
                pass
        assert_agrees_with_the_reference(h)


def test_a_full_disk_stops_the_turn_and_loses_nothing() -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    with harness(SHOP, partitions=2) as h:
        append(h, 0, 25)
        faults.arm("state_before_rename", full)
        with pytest.raises(DiskFull, match="no space left for operator state"):
            h.turn()
        assert state_files(h) == set()
        while h.turn():
            pass
        assert_agrees_with_the_reference(h)


def test_a_partition_that_is_added_has_ids_of_its_own() -> None:
    with harness(SHOP, partitions=1) as h:
        h.append("payments", payments(range(20)), partition=0)
        h.turn()
        h.log.change_topic("payments", partitions=2)
        h.append("payments", payments(range(20, 40)), partition=1)
        h.append("payments", payments(range(20, 40)), partition=0)
        while h.turn(gear="long"):
            pass
        assert_agrees_with_the_reference(h)


@pytest.mark.parametrize("gear", ["short", "long"])
def test_a_stream_whose_every_record_is_dead_remembers_nothing(gear: str) -> None:
    with harness(SHOP, partitions=2) as h:
        h.append("payments", ["broken"] * 20, partition=0, arrival=NOON)
        h.turn(gear=gear)
        assert_agrees_with_the_reference(h)
        assert state_files(h) == set()
        append(h, 0, 10)
        h.turn(gear=gear)
        assert_agrees_with_the_reference(h)


@pytest.mark.parametrize("gear", ["short", "long"])
def test_times_of_all_years_are_within_the_horizon_or_not(gear: str) -> None:
    times = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:10Z"]
    times += ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"]
    with harness(PAYMENTS + RATIOS, partitions=1) as h:
        arrival = datetime(9999, 12, 31, tzinfo=UTC)
        rows = [{"id": "same", "n": 1, "ts": time} for time in times]
        h.append("payments", rows, arrival=arrival)
        h.turn(gear=gear)
        # The clocks are: none, year 1, 1969, 1970, 9999.
        assert [row["offset"] for row in h.duplicates("payments")] == [1, 3]
        assert_agrees_with_the_reference(h)


# The tasks of a long turn, without Spark.


def blocks_of(rows: int, tasks: int) -> list[pa.RecordBatch]:
    random = np.random.default_rng(1)
    keys = [random.integers(0, 50, rows, dtype=np.uint64) << np.uint64(58) for _ in range(2)]
    clocks = np.maximum.accumulate(random.integers(0, 1000, rows))
    before = np.append(NEVER, clocks[:-1])
    places = np.arange(rows, dtype=np.uint32)
    parts = [slice(start, start + 100) for start in range(0, rows, 100)]
    return [
        unique_tasks._blocks(
            unique_tasks.Keys(keys[0][part], keys[1][part]),
            [before[part], clocks[part], places[part]],
            tasks,
        )
        for part in parts
    ]


def decided(folder: StateFolder, runs: tuple[Run, ...], batches: list[pa.RecordBatch]) -> pa.Table:
    stream = parse_project({"a": PAYMENTS}).streams[0]
    (side,) = unique_tasks._deciding(stream, Memory(folder, runs, NEVER), 1)(iter(batches))
    return pa.ipc.open_stream(side["side"][0].as_buffer()).read_all()


def test_a_task_that_is_tried_again_finds_the_same_and_its_first_files_are_orphans(
    tmp_path: Path,
) -> None:
    folder = StateFolder(tmp_path)
    batches = blocks_of(2000, 1)
    first = decided(folder, (), batches)
    again = decided(folder, (), batches[::-1])  # blocks come in whatever order
    assert first["place"].to_pylist() == again["place"].to_pylist() != []
    assert len(list(tmp_path.iterdir())) == 2


def test_tasks_share_the_shards_evenly_and_their_cuts_meet() -> None:
    assert unique_tasks._count_tasks(1, 2) == 2
    assert unique_tasks._count_tasks(4_000_000, 2) == 8
    assert unique_tasks._count_tasks(4_000_001, 2) == 16
    assert unique_tasks._count_tasks(10, 3) == 4
    assert unique_tasks._count_tasks(10**9, 2) == 1024
    assert [unique_tasks._shards(task, 4) for task in range(4)] == [
        Shards(start, start + 256) for start in range(0, 1024, 256)
    ]
