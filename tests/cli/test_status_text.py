"""`headrace status` at 80 columns: few columns, every fact on request, and what is wrong first.

Method: golden text of statuses made as values; every line is measured.
"""

from dataclasses import replace
from typing import Any

import pytest

from headrace.cli.text.output import show_renderable
from headrace.cli.text.overview import overview
from headrace.cli.text.status import all_details, details, summary
from headrace.ledger.entries import TurnReport
from headrace.observe.drift import Drift
from headrace.observe.gone import gone_text
from headrace.observe.status import (
    EngineStatus,
    OperatorStatus,
    PartitionStatus,
    SinkStatus,
    Status,
    StreamStatus,
    UnitStatus,
    ViewStatus,
)
from headrace.project.settings import Settings

NOON_US = 1_767_268_800_123_000  # 2026-01-01T12:00:00.123Z
MINUTE_US = 60_000_000

PAYMENTS = StreamStatus(
    name="payments",
    version="1cf34440",
    topic="payments",
    state="live",
    unit="main",
    lag_records=12,
    guarded=True,
    watermark_us=NOON_US,
    counters={"read": 1234567, "accepted": 1234560, "dead": 7, "duplicate": 0, "unguarded": 0},
    partitions=(
        PartitionStatus(0, 617284, 617290, 6, NOON_US + MINUTE_US, NOON_US, MINUTE_US, False),
        PartitionStatus(1, 617283, 617289, 6, NOON_US + MINUTE_US, NOON_US, MINUTE_US, True),
    ),
    readers=("spend_per_minute", "customers_of_the_last_thirty_days_by_country"),
)
COUNTERS = {"seen": 1234560, "skipped": 0, "dead": 0, "matched": 1234560}
COUNTERS |= {"pairs": 1234560, "folded": 1234557, "late": 3, "corrected": 12}
SPEND = ViewStatus(
    name="spend_per_minute",
    version="832db12c",
    inputs=("payments",),
    state="live",
    reason="",
    unit="main",
    state_rows=54321,
    state_bytes_estimate=2345678,
    lag_records=12,
    watermark_us=NOON_US,
    counters=COUNTERS,
    readers=("told",),
)
CUSTOMERS = replace(
    SPEND,
    name="customers_of_the_last_thirty_days_by_country",
    version="0a0b0c0d",
    state="failed",
    reason="Spark lost its executor three times; the last error was: Container killed by the "
    "system for exceeding memory limits.",
    unit="view:customers_of_the_last_thirty_days_by_country@0a0b0c0d",
    watermark_us=None,
    readers=(),
)
LOUD = replace(SPEND, name="loud", topic="loud-payments", state_rows=0, readers=(), kind="stream")
STEPS = {"plan": 6.0, "read": 47.4, "stamp": 1.0, "step": 0.0, "fold": 120.4, "stage": 0.7}
TURN = TurnReport("main", 42, "short", 2000, 1, 0, {**STEPS, "commit": 21.3, "publish": 8.2})
STATUS = Status(
    project="shop",
    streams=(PAYMENTS,),
    views=(CUSTOMERS, SPEND, LOUD),
    units=(UnitStatus("main", 42, TURN), UnitStatus("view:loud@0a0b0c0d", 0, None)),
    sinks=(SinkStatus("told", "spend_per_minute", "832db12c", "spend", "upsert", 40, 2),),
    outbox_records=3,
    sink_rows=0,
    void_markers=0,
    bounds=Settings(),
    operators=(OperatorStatus("deduplicate", "payments", "main", 100000, 2400000, 3),),
    engine=EngineStatus(4711, "2026-01-01T11:00:00Z", False),
    definitions=Drift(("view spend_per_minute edited",)),
)

SUMMARY = """\
shop: engine running since 2026-01-01T11:00:00Z, pid 4711
definitions on disk differ (view spend_per_minute edited): restart, or `headrace
run --watch`
view customers_of_the_last_thirty_days_by_country@0a0b0c0d failed: Spark lost
its executor three times; the last error was: Container killed by the system for
exceeding memory limits.

stream    state  lag     read  dead  watermark
─────────────────────────────────────────────────────────
payments  live    12  1234567     7  2026-01-01T12:00:00Z

view                         state   lag  state rows  late  closed before
────────────────────────────────────────────────────────────────────────────────
customers_of_the_last_thir…  failed   12       54321     3  -
spend_per_minute             live     12       54321     3  2026-01-01T12:00:00Z

written stream  topic          state  lag  records
──────────────────────────────────────────────────
loud            loud-payments  live    12  1234557

last turn: 2,000 records in 205 ms (turn 42, short)
3 late, dead or duplicate records wait to be published
"""

DETAILS = """\
shop: no engine runs; `headrace run` starts one

stream payments
  version    1cf34440
  topic      payments
  state      live
  unit       main
  read by    spend_per_minute, customers_of_the_last_thirty_days_by_country
  lag        12
  guarded    yes
  watermark  2026-01-01T12:00:00.123Z
  read       1234567
  accepted   1234560
  dead       7
  duplicate  0
  unguarded  0

partition  position     end  lag  watermark             delay  idle
───────────────────────────────────────────────────────────────────
        0    617284  617290    6  2026-01-01T12:00:00Z  1 m
        1    617283  617289    6  2026-01-01T12:00:00Z  1 m    idle

view spend_per_minute
  version        832db12c
  state          live
  unit           main
  reads          payments
  state rows     54321
  state bytes    about 2345678
  sinks          told
  lag            12
  closed before  2026-01-01T12:00:00.123Z
  seen           1234560
  skipped        0
  dead           0
  matched        1234560
  pairs          1234560
  folded         1234557
  late           3
  corrected      12
"""

REST = """\
last turn: 2,000 records in 205 ms (turn 42, short)
ms per step: plan 6, read 47.4, stamp 1, step 0, fold 120.4, stage 0.7, commit
21.3, publish 8.2
unit view:loud@0a0b0c0d: no turn yet
operator deduplicate of payments in main: 100,000 state rows, 2,400,000 bytes in
3 files
sink told: told of spend_per_minute@832db12c, writes spend (upsert), 2 rows
waiting
outbox: 3 records waiting
sinks: 0 rows waiting
written streams: 0 rows waiting
bounds: """


def json_of(status: Status) -> dict[str, Any]:
    found = status.to_json()
    if found["definitions"] is not None:  # JSON has lists
        found["definitions"] = {name: list(value) for name, value in found["definitions"].items()}
    return found


def shown(capsys: pytest.CaptureFixture[str], renderable: object) -> str:
    show_renderable(renderable)
    return capsys.readouterr().out


def test_a_summary_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, summary(json_of(STATUS), width=80))
    assert text == SUMMARY
    assert max(map(len, text.splitlines())) <= 80


WARNED = """\
shop: no engine runs; `headrace run` starts one
warning: topic payments is gone (records read from it: 1,234,567). Without them
the tables cannot be continued, audited or built again. Restore its folder from
a copy of the log, such as `cp -r COPY/payments .headrace/log/`; on Kafka,
restore the topic.
warning: stream payments: its records cannot be looked at: payments/0 is
damaged.

stream    state  lag     read  dead  watermark
─────────────────────────────────────────────────────────
payments  live    12  1234567     7  2026-01-01T12:00:00Z

view              state  lag  state rows  late  closed before
────────────────────────────────────────────────────────────────────
spend_per_minute  live    12       54321     3  2026-01-01T12:00:00Z

1 late, dead or duplicate record waits to be published
2 rows of sinks wait to be published
headrace.time: 1 record has no effect, because it was not written by the engine
"""


def test_warnings_stand_above_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    warned = replace(
        STATUS,
        views=(SPEND,),
        units=(),
        engine=None,
        definitions=None,
        outbox_records=1,
        sink_rows=2,
        void_markers=1,
        warnings=(
            gone_text("payments", 1_234_567),
            "stream payments: its records cannot be looked at: payments/0 is damaged.",
        ),
    )
    text = shown(capsys, summary(json_of(warned), width=80))
    assert text == WARNED
    assert max(map(len, text.splitlines())) <= 80


def test_every_fact_of_one_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    one = replace(STATUS, views=(SPEND,), engine=None, definitions=None)
    text = shown(capsys, details(json_of(one), width=80))
    assert text == DETAILS
    assert max(map(len, text.splitlines())) <= 80


def test_all_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, all_details(json_of(STATUS), width=80))
    assert REST in text
    for name in ("stream payments", f"view {CUSTOMERS.name}", "stream loud"):
        assert f"\n{name}\n" in text
    assert max(map(len, text.splitlines())) <= 80


def test_large_numbers_take_the_place_of_long_names(capsys: pytest.CaptureFixture[str]) -> None:
    large = replace(CUSTOMERS, lag_records=987654321, state_rows=123456789, watermark_us=NOON_US)
    found = json_of(replace(STATUS, views=(large,)))
    text = shown(capsys, summary(found, width=80))
    assert (
        "customers_of_the_las…  failed  987654321   123456789     3  2026-01-01T12:00:00Z" in text
    )
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("engine", "drift", "told"),
    [
        (None, Drift(("view a new",)), "differ (view a new): `headrace run` applies them"),
        (
            EngineStatus(1, "now", True),
            Drift(("view a new", "sink b edited")),
            "differ (view a new, sink b edited): the engine applies them after this turn",
        ),
        (
            EngineStatus(1, "now", True),
            Drift(("headrace.toml edited",)),
            "differ (headrace.toml edited): restart the engine to apply this; `--watch` does not "
            "remove definitions or reload headrace.toml",
        ),
        (
            EngineStatus(1, "now", True),
            Drift(("view a removed",)),
            "differ (view a removed): restart the engine to apply this; `--watch` does not remove "
            "definitions or reload headrace.toml",
        ),
        (
            EngineStatus(1, "now", False),
            Drift((), ("a.sql:1:1: no", "a.sql:2:1: no")),
            "are refused: a.sql:1:1: no (and 1 more problem); `headrace check --types` shows all",
        ),
    ],
)
def test_definitions_that_differ_are_told_with_what_to_do(
    capsys: pytest.CaptureFixture[str], engine: EngineStatus | None, drift: Drift, told: str
) -> None:
    found = json_of(replace(STATUS, engine=engine, definitions=drift))
    assert f"definitions on disk {told}\n" in shown(capsys, summary(found, width=200))


def test_a_turn_before_a_kill_has_no_commit_time(capsys: pytest.CaptureFixture[str]) -> None:
    killed = replace(STATUS, units=(UnitStatus("main", 42, replace(TURN, milliseconds=STEPS)),))
    text = shown(capsys, summary(json_of(killed), width=80))
    assert "last turn: 2,000 records in 176 ms before the commit (turn 42, short)" in text


def test_how_fast_it_goes_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    steps = {"plan": 1.5, "read": 4.0, "fold": 40.0, "commit": 16.0, "publish": 0.1}
    turns = [
        {
            "records": 1_000,
            "ended_us": NOON_US - 100_000 * at,
            "milliseconds": steps,
            "fresh_ms": at,
        }
        for at in range(40)
    ]
    status = {"taken_us": NOON_US, "streams": [{"watermark_us": NOON_US - 12_345_678}]}
    show_renderable(overview(status, turns, width=80))
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    figures = shown.splitlines()[2].split()
    assert figures == ["10256", "10.3", "19", "39", "61.6", "61.6", "12", "s"]
    assert "40.0" in shown
    show_renderable(overview({**status, "streams": []}, [], width=80))
    assert capsys.readouterr().out.splitlines()[2].split()[0] == "0"


def test_a_table_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    counters = {"read": 9, "accepted": 7, "dead": 1, "duplicate": 0, "unguarded": 0}
    changes = {"upserts": 5, "deletes": 2, "ignored": 1}
    stream = replace(PAYMENTS, name="cards", kind="table", counters=counters | changes)
    view = replace(SPEND, name="cards", kind="table", state_rows=4, readers=())
    found = replace(STATUS, streams=(stream,), views=(view,), warnings=())
    lines = shown(capsys, summary(json_of(found), width=80)).split("\n")
    head = next(at for at, line in enumerate(lines) if line.startswith("table"))
    assert lines[head].split() == [
        "table",
        "state",
        "lag",
        "keys",
        "upserts",
        "deletes",
        "ignored",
        "dead",
    ]
    assert lines[head + 2].split()[:1] + lines[head + 2].split()[3:] == [
        "cards",
        "4",
        "5",
        "2",
        "1",
        "1",
    ]
    assert not any(line.startswith(("stream ", "view ")) for line in lines)
