"""Any split, any order: every kind of window has the reference's rows, whatever the turns.

Method: the records of one partition are cut into five turns at random, 60 times (many more in
`make soak`). The number of the trial is a column and a key, so that one Spark job folds a turn of
all trials at once. What the store shows of each trial, and what was counted in all of them, must
be what the reference says.
"""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from soaking import SOAKING, seeded, times

from headrace.engine.gears.folding import Outcome, fold_rows
from headrace.engine.spark.analysis import plan_view
from headrace.engine.spark.session import start_spark
from headrace.ledger.definitions import hold_view
from headrace.ledger.entries import MAIN, Progress, StreamPartition
from headrace.log.base import Partition
from headrace.model.definitions import Project
from headrace.plan.fold import INPUT_COLUMNS
from headrace.reference import Record, answer
from headrace.reference.windows import to_us
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.harness import to_json
from headrace.testing.store.samples import planned, turn_of
from headrace.time.clocks import NEVER, Clock, Stamped, stamp

pytestmark = pytest.mark.spark

TRIALS = times(20, soaked=60)
TURNS = 5 if SOAKING else 3
RECORDS = 40
DELAY_US = 3_000_000
STREAM = """
CREATE STREAM s (trial BIGINT, k STRING, x BIGINT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 3 SECONDS) WITH (topic = 's', format = 'json');
"""
VIEW = """
CREATE MATERIALIZED VIEW v{options} AS
SELECT trial, window.start AS start, window.end AS end, window_time(window) AS last, k,
  count(*) AS n, sum(x) AS total, max(x) AS most, avg(x) AS mean,
  date_format(window.start, 'HH:mm:ss') AS label, window.end - INTERVAL 1 SECOND AS until,
  concat(k, '-', count(*)) AS named, sum(x) % 3 + hour(window.end) AS rest
FROM s WHERE x <> 5 GROUP BY {window}, trial, k HAVING count(*) <> 7
"""
KINDS = {
    "tumbling": ("window(ts, '10 seconds')", ""),
    "tumbling, corrected": (
        "window(ts, '10 seconds', '10 seconds', '-3 seconds')",
        "allowed_lateness = '5 seconds'",
    ),
    "hopping": ("window(ts, '12 seconds', '4 seconds')", "allowed_lateness = '2 seconds'"),
    "hopping, no multiple": ("window(ts, '10 seconds', '3 seconds', '1 second')", "late = 'drop'"),
    "hopping, kept for a while": (
        "window(ts, '30 seconds', '7 seconds')",
        "late = 'fold', retention = '20 seconds'",
    ),
    "cumulative": ("cumulate(ts, '5 seconds', '20 seconds')", "allowed_lateness = '1 second'"),
    "cumulative, kept for a while": (
        "cumulate(ts, '5 seconds', '1 minute')",
        "late = 'drop', retention = '0 seconds'",
    ),
    "a derived time": ("window(ts - INTERVAL 7 SECONDS, '9 seconds', '4 seconds')", ""),
    "days of a zone": (
        "window(ts, '1 day')",
        "time_zone = 'Europe/Berlin', retention = '10 seconds'",
    ),
    "overlapping days of a zone": (
        "window(ts, '3 days', '2 days')",
        "time_zone = 'Europe/Berlin', late = 'fold'",
    ),
    "cumulative days of a zone": (
        "cumulate(ts, '1 day', '4 days')",
        "time_zone = 'Europe/Berlin', allowed_lateness = '1 second'",
    ),
}
# Berlin's midnight before the day of 23 hours.
START = datetime(2026, 3, 28, 22, 59, 20, tzinfo=UTC)


def draw_records() -> list[dict[str, object]]:
    rng = random.Random(20260328)
    records: list[dict[str, object]] = []
    clock = START
    for _ in range(RECORDS):
        clock += timedelta(milliseconds=rng.randrange(6_000))
        behind = timedelta(seconds=rng.choice([0, 0, 0, 1, 4, 6, 9, 13, 25, 60]))
        record = {"k": rng.choice("ab"), "x": rng.randrange(-9, 9), "ts": clock - behind}
        records.append({"trial": 0, **record})
    return records


RECORDS_OF_ALL = draw_records()


def reference_rows(project: Project) -> tuple[Counter[str], dict[str, int]]:
    found = answer(
        project,
        {
            Partition("s", 0): [
                Record(offset, None, None, to_json(record))
                for offset, record in enumerate(RECORDS_OF_ALL)
            ]
        },
    )
    return Counter(map(plain, found.rows["v"])), found.counters["v"]


def plain(row: dict[str, object]) -> str:
    return repr({name: value for name, value in sorted(row.items()) if name != "trial"})


def stamped() -> Stamped:
    times = np.array([to_us(record["ts"]) for record in RECORDS_OF_ALL])  # type: ignore[arg-type]
    return stamp(times, Clock(delay_us=DELAY_US))


@cache
def turns_of_all_trials(schema: pa.Schema) -> list[pa.Table]:
    """Return the input of each turn: of every trial those records that its cut puts there."""
    rng = seeded(7)
    watermarks = stamped().watermarks_us
    turns: list[list[dict[str, object]]] = [[] for _ in range(TURNS)]
    for trial in range(TRIALS):
        for offset, record in enumerate(RECORDS_OF_ALL):
            never = watermarks[offset] == NEVER
            watermark = None if never else int(watermarks[offset])
            place = {"__partition": 0, "__offset": trial * RECORDS + offset}
            row = record | place | {"trial": trial, "__watermark": watermark, "__side": None}
            turns[rng.randrange(TURNS)].append(row)
    return [pa.Table.from_pylist(rows, schema=schema) for rows in turns]


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_any_split_of_any_order_has_the_same_windows(kind: str, tmp_path: Path) -> None:
    window, options = KINDS[kind]
    text = VIEW.format(window=window, options=f" WITH ({options})" if options else "")
    project = parse_project({"test.sql": STREAM + text})
    expected, counters = reference_rows(project)
    assert len(expected) > 1
    assert "drop" in options or "fold" in options or counters["late"]

    spark = start_spark()
    stream, view = project.streams[0], project.views[0]
    [fold] = plan_view(spark, view, (stream,))
    types = {column.name: column.type for column in stream.columns} | INPUT_COLUMNS
    schema = pa.schema([(name, type.arrow) for name, type in types.items()])
    whole = Outcome()
    store = DuckDBStore(tmp_path / "store.duckdb")
    epoch = store.begin_epoch()
    held = hold_view(fold.view, [fold.stream], MAIN)
    place = StreamPartition("s", 0)
    store.hold(epoch, [held], {MAIN: {place: Progress()}})
    store.prepare(fold.table)
    store.show(epoch, MAIN, [fold.table])
    for turn, rows in enumerate(turns_of_all_trials(schema), 1):
        outcome = fold_rows(fold, spark.newSession(), rows)
        deltas = tuple(store.stage(fold.table, delta) for delta in outcome.deltas)
        # Each trial has its own cut, so W is told at the end, when it is the same for all.
        clock = stamped().end if turn == TURNS else Clock()
        progress = {place: Progress(turn, clock)}
        store.commit(turn_of(planned(epoch, turn), {fold.table: deltas}, progress=progress))
        whole.include(outcome)
    with store.open() as snapshot:
        shown = snapshot.query("SELECT * FROM v", max_rows=None).to_pylist()
    store.close()

    of_trial: dict[int, Counter[str]] = {trial: Counter() for trial in range(TRIALS)}
    for row in shown:
        of_trial[row["trial"]][plain(row)] += 1
    for trial, found in of_trial.items():
        assert found == expected, f"trial {trial}"
    assert not whole.dead_count
    assert whole.folded == counters["folded"] * TRIALS
    assert whole.late_pairs == counters["late"] * TRIALS
    assert whole.corrected == counters["corrected"] * TRIALS
    assert whole.records + whole.late_throughout == counters["matched"] * TRIALS
