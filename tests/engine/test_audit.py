"""The audit finds what is wrong, covers all of the log or says so, and follows an engine that runs.

Method: rows, counters and side topics are changed by hand; the engine stops before the log's end;
and it turns between the exports that an audit asks for.
"""

from collections.abc import Callable
from typing import BinaryIO

import pytest
from shop import SHOP, payments

from headrace.engine.spark.session import start_spark
from headrace.errors import AuditFailed, AuditIncomplete, EngineError
from headrace.log.records import records
from headrace.observe.audit import Audit, audit, export_of
from headrace.testing import Harness, harness

pytestmark = pytest.mark.spark


def audited(
    h: Harness, before: Callable[[str | None], None] = lambda _: None, *, wait_seconds: float = 0
) -> Audit:
    """Audit; `before` each export it is told which table is asked for."""
    export = export_of(h.engine.tools.store)

    def exporting(sink: BinaryIO, table: str | None) -> None:
        before(table)
        export(sink, table)

    return audit(h.log, exporting, start_spark(), wait_seconds=wait_seconds)


def append(h: Harness, start: int, count: int) -> None:
    for partition in (0, 1):
        h.append("payments", payments(start + partition * 1000, count), partition=partition)


def test_less_than_the_log_holds_is_no_proof() -> None:
    with harness(SHOP, partitions=2) as h:
        nothing = audited(h)
        assert nothing.unread == ("the log holds no records of payments yet, so nothing is proved",)
        append(h, 0, 20)
        behind = audited(h)
        assert (behind.records, behind.differences) == (0, ())
        with pytest.raises(AuditIncomplete, match=r"unit main: 40 records of payments are not"):
            behind.check()
        h.turn(max_records=10)
        behind = audited(h)
        assert (behind.records, behind.differences) == (10, ())
        (sentence,) = behind.unread
        assert sentence == (
            "unit main: 30 records of payments are not read yet (0: 15, 1: 15 by partition), so "
            "nothing is said of them. Let `headrace run` read them, and audit again."
        )
        # An engine that runs is waited for; what comes while it reads does not prolong that.
        append(h, 20, 5)

        def running(_: str | None) -> None:
            append(h, 100 + h.log.extents("payments").popitem()[1].end_offset, 1)
            h.turn(max_records=30)

        whole = audited(h, running, wait_seconds=60)
        whole.check()
        assert whole.records >= 50


def test_every_table_is_compared_at_its_own_position() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 20)
        h.turn()
        asked: list[str | None] = []

        def running(table: str | None) -> None:
            if table is not None:
                append(h, 100 + 10 * len(asked), 10)
                h.wall("+2 minutes")  # markers too
                h.turn()
            asked.append(table)

        found = audited(h, running)
        found.check()
        tables = [table for table in asked if table is not None]
        assert found.tables == len(tables) >= 2
        assert found.records == 40 + 20 * len(tables)
        assert found.rows > 0


def test_views_that_change_meanwhile_are_not_compared_with_others() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 20)
        h.turn()
        snapshot = h.engine.tools.store.open
        with snapshot() as open:
            (view, *_) = [held for held in open.holdings() if held.kind == "view"]

        def drop(table: str | None) -> None:
            if table is not None and view.name not in table:
                h.engine.tools.store.drop(h.engine.epoch, [view])

        with pytest.raises(EngineError, match=r"changed while they were audited.*Audit again"):
            audited(h, drop)


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DELETE FROM {table} WHERE rowid = 0", "the table lacks a row that the log makes"),
        ("INSERT INTO {table} FROM {table} LIMIT 1", "a key stands twice"),
        ("UPDATE {table} SET _events = _events + 1", "the log makes"),
        ("UPDATE headrace.counters SET value = value + 1 WHERE counter = 'read'", "read is"),
        ("UPDATE headrace.progress SET clock_us = clock_us + 1", "the ledger has"),
    ],
)
def test_a_change_by_another_hand_is_found(statement: str, sentence: str) -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 20)
        h.turn()
        table = next(iter(h.engine.units["main"].folds)).table
        file = h.engine.tools.store._file  # type: ignore[attr-defined]
        with file.transaction():
            file.run(statement.format(table=f'headrace."{table.name}"'))
        with pytest.raises(AuditFailed, match=sentence):
            h.audit()


def test_side_records_that_are_missing_or_too_many_are_found() -> None:
    with harness(SHOP, partitions=2) as h:
        append(h, 0, 20)
        h.append("payments", ["broken", "broken too"], partition=0)
        h.turn()
        h.audit()
        kept = h.topic("payments.dead")[0]
        headers = [(each["name"], each["value"]) for each in kept["headers"]]
        again = records([kept["value"]], headers=[headers])
        h.log.append("payments.dead", again, partition=0)
        with pytest.raises(AuditFailed, match=r"payments\.dead, of payments: holds 1 record twice"):
            h.audit()
