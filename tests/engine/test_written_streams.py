"""A stream that is written: its topic holds the rows of its query, each once, whatever happens.

Method: random logs, cuts and crashes, in both gears, against the reference; then stories of edits,
lost stores and logs out of reach, with an audit, which compares the topic row by row.
"""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from agreement import (
    any_split,
    assert_agrees_with_the_reference,
    assert_the_cuts_do_not_show,
    rich_scripts,
)
from crashing import crash_at_every_point
from hypothesis import given
from hypothesis import strategies as st
from shop import STREAM, payments

from headrace import faults
from headrace.errors import AuditFailed, Unreachable
from headrace.log import records
from headrace.observe.status import take_status
from headrace.project.settings import Settings
from headrace.testing import Harness, harness
from headrace.testing.strategies import TURN_POINTS, Script

pytestmark = pytest.mark.spark

SHARES = """
CREATE STREAM shares WITH (topic = 'shares.out') AS
SELECT id, amount, 100 / n AS share, ts, watermark() AS w FROM payments WHERE n % 4 <> 1;
"""
DIGITS = """
CREATE STREAM refunds (id STRING, ts TIMESTAMP NOT NULL,
  WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS) WITH (topic = 'refunds');
CREATE STREAM digits WITH (topic = 'digits.out', key = 'digit') AS
SELECT digit, id, ts FROM payments LATERAL VIEW explode(split(id, '')) d AS digit WHERE digit <> '3'
UNION ALL SELECT card, id, ts FROM payments WHERE n > 6
UNION ALL SELECT 'back' AS digit, id, ts FROM refunds;
"""
SAME = """
CREATE MATERIALIZED VIEW same AS SELECT * FROM digits;
"""
WRITTEN = STREAM + SHARES + DIGITS + SAME
REFUNDS = [{"id": f"r{n}", "ts": f"2026-01-01T12:00:{n:02}Z"} for n in range(6)]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STREAM_POINTS = ["stream_before_append", "stream_after_append"]


def append(h: Harness, start: int, count: int = 8) -> None:
    for partition in (0, 1):
        h.append("payments", payments(start + partition * 1000, count), partition=partition)
        h.append("payments", ["broken"], partition=partition)  # so that the outbox is never empty
        h.append("refunds", REFUNDS[:2], partition=partition)


def finish(h: Harness) -> None:
    while h.turn():
        pass


def held(h: Harness, topic: str) -> Counter[str]:
    """Return the rows of a topic, with their coordinates and keys."""
    return Counter(
        repr((row["key"], row["value"], sorted((e["name"], e["value"]) for e in row["headers"])))
        for row in h.topic(topic)
    )


def by_version(h: Harness, topic: str) -> dict[str, list[int]]:
    """Return which source offsets each version wrote, of all partitions."""
    found: dict[str, list[int]] = {}
    for row in h.topic(topic):
        headers = {each["name"]: each["value"].decode() for each in row["headers"]}
        found.setdefault(headers["headrace.version"], []).append(int(headers["headrace.offset"]))
    return found


def values(h: Harness, topic: str) -> list[dict[str, Any]]:
    return [json.loads(row["value"]) for row in h.topic(topic)]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("gear", "points"),
    [
        ("short", [*TURN_POINTS, *STREAM_POINTS]),
        ("long", ["before_commit", "after_commit", *STREAM_POINTS]),
    ],
    ids=["short", "long"],
)
def test_a_crash_at_any_step_writes_every_row_once(gear: str, points: list[str]) -> None:
    with harness(STREAM + DIGITS, partitions=2, settings=Settings()) as h:
        crash_at_every_point(h, points, lambda number: append(h, number * 4, 4), gear=gear)
        before = {topic: held(h, topic) for topic in ("digits.out", "digits.dead")}
        h.audit()
        h.lose_store()  # a store that is built anew writes what is missing, and that is nothing
        h.restart()
        finish(h)
        assert {topic: held(h, topic) for topic in before} == before
        append(h, 500)
        finish(h)
        assert_agrees_with_the_reference(h)
        h.audit()


@any_split(1, soaked=3)
@given(
    script=rich_scripts(
        lambda time: st.sampled_from(
            [
                {"id": "7", "card": "a", "amount": "1.50", "n": 3, "ts": time},
                {"id": "123", "card": None, "amount": None, "n": 8, "ts": time},
                {"id": "", "card": "b", "amount": "0.00", "n": 0, "ts": time},
                {"id": "9", "ts": time},
            ]
        ),
        streams=["payments", "refunds"],
        min_records=8,
    )
)
def test_the_cuts_never_show(script: Script) -> None:
    assert_the_cuts_do_not_show(script, WRITTEN, Settings(split_folds=2))


def test_a_topic_holds_the_rows_of_an_equal_view_under_their_coordinates() -> None:
    with harness(WRITTEN, partitions=2) as h:
        append(h, 0)
        finish(h)
        rows = Counter((row["id"], row["digit"]) for row in h.rows("same"))
        assert len(rows) > 20
        assert Counter((row["id"], row["digit"]) for row in values(h, "digits.out")) == rows
        assert len(held(h, "digits.out")) == rows.total()  # no two have the same headers
        branches = {
            (headers["headrace.topic"], headers["headrace.branch"])
            for row in h.topic("digits.out")
            if (headers := {each["name"]: each["value"].decode() for each in row["headers"]})
        }
        assert branches == {("payments", "0"), ("payments", "1"), ("refunds", "2")}
        carried = Counter[bool]()
        for row in h.topic("shares.out"):
            w = json.loads(row["value"])["w"]
            found = [e["value"] for e in row["headers"] if e["name"] == "headrace.watermark"]
            since = [] if w is None else [datetime.fromisoformat(w) - EPOCH]
            assert [timedelta(microseconds=int(each)) for each in found] == since
            carried[w is not None] += 1
        assert carried[True] > 5
        assert carried[False] == 1  # the first of its partition


def test_partitions_that_are_added_are_written_too() -> None:
    with harness(WRITTEN, partitions=1) as h:
        h.append("payments", payments(0, 9), partition=0)
        h.turn(max_records=4)
        h.log.change_topic("payments", partitions=3)
        h.append("payments", payments(30, 9), partition=2)
        h.turn(max_records=3)
        h.restart()
        finish(h)
        assert h.log.topic("shares.out").partitions == 3
        assert_agrees_with_the_reference(h)
        h.audit()


def test_an_edited_stream_writes_on_where_the_one_before_it_stands() -> None:
    edited = SHARES.replace("n % 4 <> 1", "n % 2 = 0")
    with harness(STREAM + SHARES, partitions=1) as h:
        h.append("payments", payments(0, 12), partition=0)
        finish(h)
        before = held(h, "shares.out")
        [old] = by_version(h, "shares.out")
        h.restart(STREAM + edited)
        h.turn(max_records=5)  # the new version is built beside the old one, which goes on
        h.append("payments", payments(12, 10), partition=0)
        h.crash("before_swap")
        for _ in range(9):
            h.turn(max_records=5)
            if h.crashed:
                h.restart()
        h.append("payments", payments(22, 10), partition=0)
        finish(h)
        h.audit()
        assert not before - held(h, "shares.out")
        found = by_version(h, "shares.out")
        [new] = found.keys() - {old}
        assert max(found[old]) < min(found[new])
        offsets = [*found[old], *found[new]]
        assert len(offsets) == len(set(offsets))
        # Told to rewrite, it begins anew in a topic of its own, and the old one stays as it is.
        kept = held(h, "shares.out")
        h.restart(STREAM + edited.replace("'shares.out'", "'shares.out', rewrite = 'new topic'"))
        finish(h)
        assert held(h, "shares.out") == kept
        [topic] = [each.name for each in h.log.topics() if each.name.startswith("shares.out.")]
        [offsets] = by_version(h, topic).values()
        assert min(offsets) < max(found[old])
        assert_agrees_with_the_reference(h)
        h.lose_store()
        h.restart(STREAM + edited)  # back, in a store that knows of no version before it
        finish(h)
        assert not kept - held(h, "shares.out")
        h.audit()


def test_rows_wait_while_the_log_is_out_of_reach_and_outlive_their_version() -> None:
    def unreachable() -> None:
        raise Unreachable("the log is out of reach")

    with harness(STREAM + SHARES, partitions=1) as h:
        h.append("payments", payments(0, 5), partition=0)
        faults.arm("stream_before_append", unreachable)
        with pytest.raises(Unreachable):
            h.turn()
        with h.engine.tools.store.open() as snapshot:
            status = take_status("test", snapshot, h.log, Settings())
        [stream] = status.views
        assert (stream.name, stream.topic, stream.state_rows) == ("shares", "shares.out", 0)
        assert stream.counters["folded"] == status.written_rows == 3
        h.audit()
        assert h.topic("shares.out") == []
        edited = SHARES.replace("n % 4 <> 1", "n < 0")
        faults.disarm()
        h.restart(STREAM + edited)
        finish(h)
        assert [row["id"] for row in values(h, "shares.out")] == ["2", "3", "4"]
        h.audit()


def test_what_cannot_be_written_is_set_aside_and_goes_on_there_when_it_is_mended() -> None:
    long = "CREATE STREAM long WITH (topic = 'long.out') AS SELECT id, {} AS text FROM payments;"
    repeated = long.format("repeat('x', CAST(n * 300000 AS INT))")
    with harness(STREAM + repeated + SHARES, partitions=1) as h:
        h.append("payments", payments(0, 3), partition=0)
        finish(h)
        h.append("payments", payments(3, 4), partition=0)
        finish(h)
        with h.engine.tools.store.open() as snapshot:
            [held] = [each for each in snapshot.holdings() if each.name == "long"]
        assert held.state == "failed"
        assert "payments/0@4 has 1200020 bytes as a record" in held.reason
        assert [row["id"] for row in values(h, "long.out")] == ["0", "1", "2"]
        assert len(h.topic("shares.out")) == 4  # the others go on
        h.restart(STREAM + long.format("left(repeat('x', 9), CAST(n AS INT))") + SHARES)
        finish(h)
        assert [row["id"] for row in values(h, "long.out")] == ["0", "1", "2", "3", "4", "5", "6"]
        h.audit()


def test_the_audit_sees_what_a_topic_should_not_hold_and_what_it_lacks() -> None:
    with harness(STREAM + SHARES, partitions=1) as h:
        h.append("payments", payments(0, 4), partition=0)
        finish(h)
        h.audit()
        [first, *_] = h.topic("shares.out")
        headers = [(each["name"], each["value"]) for each in first["headers"]]
        h.log.append("shares.out", records([b"not ours"]), partition=0)
        h.audit()
        h.log.append("shares.out", records([first["value"]], headers=[headers]), partition=0)
        with pytest.raises(AuditFailed, match="holds 1 row twice"):
            h.audit()
        h.log.delete_topic("shares.out")
        with pytest.raises(AuditFailed, match=r"stream shares: lacks 2 rows, payments/0@2"):
            h.audit()
        h.log.create_topic("shares.out", partitions=1)
        h.log.append("shares.out", records([b"other"], headers=[headers]), partition=0)
        with pytest.raises(AuditFailed, match="should not hold 1 row, payments/0@2"):
            h.audit()
