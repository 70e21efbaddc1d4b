"""A topic whose records were read and are gone is told, by status and by the audit.

Method: a store whose ledger has read five records, and a log without them; no Spark.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.engine.versions.changes import decide_changes
from headrace.errors import PositionLost
from headrace.ledger.entries import MAIN, HoldingState, Progress, StreamPartition
from headrace.log import EmbeddedLog, Partition, records
from headrace.observe.audit import _unread, audit, export_of
from headrace.observe.replaying import Position
from headrace.observe.status import Status, take_status
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.store.duckdb.store import DuckDBStore

SQL = """
CREATE STREAM clicks (page STRING) WITH (topic = 'clicks', format = 'json');
CREATE MATERIALIZED VIEW hits AS SELECT page, count(*) AS n FROM clicks GROUP BY page;
"""
GONE = (
    "topic clicks is gone (records read from it: 5). Without them the tables cannot be "
    "continued, audited or built again. Restore its folder from a copy of the log, such as "
    "`cp -r COPY/clicks .headrace/log/`; on Kafka, restore the topic."
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", sync=False)
    yield log
    log.close()


def store_at(folder: Path, offsets: list[int]) -> DuckDBStore:
    store = DuckDBStore(folder / "store.duckdb")
    entered = decide_changes(parse_project({"a.sql": SQL}), []).enter
    progress = {StreamPartition("clicks", at): Progress(n) for at, n in enumerate(offsets)}
    store.hold(store.begin_epoch(), entered, {MAIN: progress})
    return store


def status(store: DuckDBStore, log: EmbeddedLog) -> Status:
    with store.open() as snapshot:
        return take_status("shop", snapshot, log, Settings())


def test_a_topic_that_is_gone_is_told(tmp_path: Path, log: EmbeddedLog) -> None:
    store = store_at(tmp_path, [2, 3])
    assert status(store, log).warnings == (GONE,)
    with pytest.raises(PositionLost) as caught:
        audit(log, export_of(store), cast(Any, None))
    assert str(caught.value) == GONE  # and no advice to create it


def test_a_topic_of_which_nothing_was_read_is_made_again(tmp_path: Path, log: EmbeddedLog) -> None:
    store = store_at(tmp_path, [0, 0])
    told = "topic clicks is gone; the engine creates it again when it starts"
    assert status(store, log).warnings == (told,)


def test_a_topic_that_was_made_anew_is_told(tmp_path: Path, log: EmbeddedLog) -> None:
    store = store_at(tmp_path, [2, 3])
    log.create_topic("clicks", partitions=2)
    log.append("clicks", records(["1", "2"]), partition=0)
    (told,) = status(store, log).warnings
    assert told.startswith("clicks/1@3: the topic was made anew: it begins at 0 and ends at 0.")
    assert "Restore the topic from a copy of the log" in told


@pytest.mark.parametrize("failed", [False, True])
def test_records_that_are_unread_are_told_with_the_reason(
    tmp_path: Path, log: EmbeddedLog, failed: bool
) -> None:
    log.create_topic("clicks", partitions=1)
    log.append("clicks", records(["1", "2"]))
    entered = decide_changes(parse_project({"a.sql": SQL}), []).enter
    if failed:
        why = {"state": HoldingState.FAILED, "reason": "Spark lost its executor."}
        entered = [replace(each, **why) if each.kind == "view" else each for each in entered]
    unit = Position(MAIN, entered, {StreamPartition("clicks", 0): Progress(1)}, 0)
    (told,) = _unread(unit, {Partition("clicks", 0): 2})
    assert told == (
        "unit main: 1 record of clicks is not read yet (0: 1 by partition), so nothing is said of "
        "it. "
        + (
            "View hits failed: Spark lost its executor."
            if failed
            else "Let `headrace run` read it, and audit again."
        )
    )


def test_a_topic_that_is_there_is_no_matter(tmp_path: Path, log: EmbeddedLog) -> None:
    store = store_at(tmp_path, [2])
    log.create_topic("clicks", partitions=1)
    log.append("clicks", records(["1", "2"]))
    assert status(store, log).warnings == ()
