"""Any split, any order: 60 ways to bring the same records in turns give the same sessions.

Method: each split puts every record into one of eight turns, at random, so that records of a
session come in any order; there are many more splits in `make soak`. The pieces of all splits and
turns are folded by one Spark job, with split and turn as keys; the store then merges turn after
turn, all splits side by side. Afterwards every split has the reference's rows, which knows neither
turns nor pieces.
"""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from soaking import seeded, times

from headrace.engine.spark.analysis import plan_view
from headrace.engine.spark.session import start_spark
from headrace.ledger.definitions import hold_view
from headrace.ledger.entries import MAIN
from headrace.log.base import Partition
from headrace.plan.fold import INPUT_COLUMNS
from headrace.reference import Record, answer
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore
from headrace.testing.harness import to_json
from headrace.testing.store.samples import planned, turn_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SPLITS = times(60)
TURNS = 8
RECORDS = 60
STREAM = """
CREATE STREAM clicks (
  k STRING, x BIGINT, split INT, turn INT, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 0 SECONDS
) WITH (topic = 'clicks');
"""
VIEW = """
CREATE MATERIALIZED VIEW v WITH (late = 'fold') AS
SELECT {keys}k, window.start AS start, window.end AS end, count(*) AS n, sum(x) AS total,
  avg(x) AS mean, min(x) AS low, max(x) AS high,
  date_format(window.start, 'HH:mm:ss') AS label, window.end - INTERVAL 1 SECOND AS until
FROM clicks GROUP BY session_window(ts, '10 seconds'), {keys}k;
"""


def drawn_records(rng: random.Random) -> list[dict[str, object]]:
    """Draw records around 1970; many are exactly the gap apart, or a microsecond more."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    steps = [timedelta(seconds=5 * number) for number in range(-60, 60)]
    nudges = [timedelta(microseconds=nudge) for nudge in (0, 0, 0, 1, -1)]
    return [
        {
            "k": rng.choice(["a", "b", None]),
            "x": rng.choice([None, rng.randint(-(2**62), 2**62)]),
            "ts": epoch + rng.choice(steps) + rng.choice(nudges),
        }
        for _ in range(RECORDS)
    ]


@pytest.mark.soak
def test_every_split_gives_the_same_sessions(tmp_path: Path) -> None:
    rng = seeded(5)
    records = drawn_records(rng)
    spark = start_spark()
    pieces_of = parse_project({"a.sql": STREAM + VIEW.format(keys="split, turn, ")})
    split_view = parse_project({"b.sql": STREAM + VIEW.format(keys="split, ")})
    [folding] = plan_view(spark, pieces_of.views[0], pieces_of.streams)
    [fold] = plan_view(spark, split_view.views[0], split_view.streams)

    types = {column.name: column.type for column in pieces_of.streams[0].columns} | INPUT_COLUMNS
    schema = pa.schema([(name, type.arrow) for name, type in types.items()])
    rows = [
        record | {"split": split, "turn": rng.randrange(TURNS), "__partition": 0, "__offset": at}
        for split in range(SPLITS)
        for at, record in enumerate(records)
    ]
    session = spark.newSession()
    table = pa.Table.from_pylist(rows, schema=schema)
    session.createDataFrame(table).coalesce(1).createOrReplaceTempView("__input")
    pieces = session.sql(folding.query).toArrow()
    # The keys are split, turn and k there; split and k here.
    pieces = pieces.rename_columns({"k1": "turn", "k2": "k1"})

    store = DuckDBStore(tmp_path / "store.duckdb")
    epoch = store.begin_epoch()
    store.hold(epoch, [hold_view(fold.view, [fold.stream], MAIN)], {})
    store.prepare(fold.table)
    store.show(epoch, MAIN, [fold.table])
    for turn in range(TURNS):
        delta = store.stage(fold.table, pieces.filter(pc.equal(pieces["turn"], turn)))
        store.commit(turn_of(planned(epoch, turn + 1), {fold.table: (delta,)}))
    with store.open() as snapshot:
        found = snapshot.query("SELECT * FROM v", max_rows=None).to_pylist()
    store.close()

    log = [Record(at, 0, None, to_json(record)) for at, record in enumerate(records)]
    wanted = parse_project({"c.sql": STREAM + VIEW.format(keys="")})
    expected = answer(wanted, {Partition("clicks", 0): log}).rows["v"]
    assert 20 < len(expected) < RECORDS  # neither all alone nor all together
    splits: dict[int, Counter[str]] = {split: Counter() for split in range(SPLITS)}
    for row in found:
        splits[row.pop("split")][text(row)] += 1
    for split, sessions in splits.items():
        assert sessions == Counter(map(text, expected)), split


def text(row: dict[str, object]) -> str:
    shown = {name: value for name, value in row.items() if not name.startswith("_")}
    return repr(
        {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in shown.items()
        }
    )
