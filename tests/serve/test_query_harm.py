"""Queries cannot harm the engine, whatever they ask for, and whatever happens to their processes.

Method: real processes with small limits. Hungry queries are asked many at a time, processes are
killed while they answer, and askers hang up; afterwards a small query must be answered.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from refusals import HIDDEN, MADE

from headrace.errors import EngineError, QueryRefused, TooManyQueries
from headrace.serve.queries.forms import Form
from headrace.serve.queries.pool import QueryPool
from headrace.serve.queries.worker import Cancelled, WorkerLost
from serve.asking import ENDLESS, LIMITS, MB, Filled, is_running, kill_busy, rows_of, wait_until

HUNGRY = [
    "SELECT length(repeat('x', 4000000000))",
    ENDLESS,
    "SELECT count(*) FROM range(100000000) a, range(100000000) b",
    "SELECT list(i) FROM range(1000000000) t(i)",
    "SELECT string_agg(repeat('x', 1000000)) FROM range(1000)",
    "SELECT count(DISTINCT i) FROM range(1000000000) t(i)",
    "SELECT a.k, list(b.k) FROM hits a, range(100000000) r, hits b GROUP BY a.k",
    "SELECT length(repeat(k, 2000000000)) FROM hits",
    "WITH RECURSIVE r(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM r) SELECT length(x) FROM r",
    "SELECT list_transform(range(200000000), lambda x: x * 2)",
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    filled = Filled(tmp_path_factory.mktemp("store"))
    yield filled
    filled.store.close()


@pytest.fixture(scope="module")
def lone(filled: Filled) -> Iterator[QueryPool]:
    """Make a pool of one process: what one query leaves behind, the next one meets."""
    with filled.pool(workers=1, seconds=60.0) as pool:
        yield pool


def engine_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_twenty_hungry_queries_at_once_do_not_harm_the_engine(filled: Filled) -> None:
    outcomes: list[str] = []

    def ask(sql: str) -> None:
        try:
            pool.ask(sql).close()
        except QueryRefused as error:
            outcomes.append(str(error))

    with filled.pool(seconds=3.0, patience_seconds=3.0) as pool:
        wait_until(lambda: len(pool.processes()) == LIMITS.workers)
        rows_of(pool, "FROM hits")
        before = engine_bytes()
        with ThreadPoolExecutor(20) as askers:
            list(askers.map(ask, HUNGRY * 2))
        grown = engine_bytes() - before
        wait_until(lambda: len(pool.processes()) == LIMITS.workers)
        assert rows_of(pool, "SELECT count(*) FROM hits") == [[2]]
    assert grown < 300 * MB
    # All of them are refused: for what they take, or because others take it.
    assert len(outcomes) == 20
    ends = (
        "took more than 3 seconds",
        "needed more memory than the 192 MB",
        "at once and others wait",
    )
    assert [text for text in outcomes if not any(end in text for end in ends)] == []


def test_a_query_ends_at_its_limits_and_leaves_nothing_to_the_next(filled: Filled) -> None:
    with filled.pool(workers=1, seconds=3.0) as pool:
        for sql, text in (
            (ENDLESS, "the query took more than 3 seconds and was ended; ask for less at once"),
            (
                "SELECT length(repeat('x', 4000000000))",  # at once, however slow the machine is
                "the query needed more memory than the 192 MB that one query has; aggregate, "
                "filter, or ask for fewer columns",
            ),
        ):
            with pytest.raises(QueryRefused) as refused:
                pool.ask(sql)
            assert str(refused.value) == text
            assert rows_of(pool, "SELECT max(k) FROM hits") == [["b"]]


def test_what_a_query_says_does_not_fill_the_engine(lone: QueryPool) -> None:
    with pytest.raises(QueryRefused) as refused:
        lone.ask("SELECT error(repeat('x', 1000000))")
    assert len(str(refused.value)) == 10_000
    with pytest.raises(QueryRefused, match="needed more memory"):
        lone.ask("SELECT error(repeat('x', 100000000))")
    wide = ", ".join(f"1 AS {'x' * 1_000}{number}" for number in range(1_100))
    with pytest.raises(QueryRefused, match="columns of the answer are too many"):
        lone.ask(f"SELECT {wide}")


def test_an_asker_changes_no_answer_of_the_next_one(lone: QueryPool) -> None:
    rows = rows_of(lone, "FROM hits ORDER BY k")
    processes = lone.processes()
    for sql in (*(f"EXPLAIN ANALYZE {sql}" for sql in MADE), *HIDDEN, "SELECT '\ud800'"):
        with pytest.raises(QueryRefused):
            lone.ask(sql.format(folder="/tmp"))
    assert rows_of(lone, "FROM hits ORDER BY k") == rows
    assert rows_of(lone, "SELECT sum(a), getvariable('made') FROM (VALUES (1), (2)) t(a)") == [
        [3, None]
    ]
    assert lone.processes() == processes


def test_an_error_of_ours_is_an_answer_and_another_process_goes_on(
    lone: QueryPool, caplog: pytest.LogCaptureFixture
) -> None:
    rows_of(lone, "SELECT 1")
    (pid,) = lone.processes()
    with pytest.raises(QueryRefused, match=r"error of Headrace, please report it: \w+Error: "):
        lone.ask("SELECT 1", form=cast(Form, "no form"))
    assert "a query failed by an error of Headrace" in caplog.text
    assert rows_of(lone, "SELECT 1") == [[1]]
    assert pid not in lone.processes()


def test_a_process_maps_what_it_was_handed_only_while_it_answers(lone: QueryPool) -> None:
    assert rows_of(lone, "SELECT count(*) FROM hits") == [[2]]
    with pytest.raises(QueryRefused):
        lone.ask("SELECT error(k) FROM hits")
    (pid,) = lone.processes()
    assert "(deleted)" not in Path(f"/proc/{pid}/maps").read_text()


def test_a_process_that_does_not_heed_its_limit_is_killed(filled: Filled) -> None:
    # A process that is stopped answers neither its own timer nor DuckDB's interrupt.
    with filled.pool(workers=1, seconds=3.0) as pool:
        rows_of(pool, "SELECT 1")
        (pid,) = pool.processes()
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(QueryRefused, match="took more than 3 seconds and was ended"):
            pool.ask("SELECT 1")
        assert not is_running(pid)
        assert rows_of(pool, "SELECT 1") == [[1]]


def test_a_process_that_is_killed_while_it_answers_is_told_and_replaced(lone: QueryPool) -> None:
    rows_of(lone, "SELECT 1")
    with ThreadPoolExecutor(1) as askers:
        asked = askers.submit(lone.ask, ENDLESS)
        killed = kill_busy(lone)
        with pytest.raises(WorkerLost) as lost:
            asked.result()
    assert str(lost.value) == (
        "the process that answered the query was ended (SIGKILL), perhaps because it needed more "
        "memory than there is; ask again, or for less at once"
    )
    assert rows_of(lone, "SELECT max(k) FROM hits") == [["b"]]
    assert killed not in lone.processes()


def test_a_process_that_is_killed_while_it_waits_is_replaced(lone: QueryPool) -> None:
    rows_of(lone, "SELECT 1")
    (pid,) = lone.processes()
    os.kill(pid, signal.SIGKILL)
    (idle,) = lone._idle.queue
    wait_until(lambda: not idle.is_alive())
    assert rows_of(lone, "SELECT 1") == [[1]]
    assert pid not in lone.processes()


def test_an_asker_that_hangs_up_frees_its_place(lone: QueryPool) -> None:
    rows_of(lone, "SELECT 1")
    (pid,) = lone.processes()
    gone = threading.Event()
    with ThreadPoolExecutor(2) as askers:
        asked = askers.submit(lone.ask, ENDLESS, cancelled=gone.is_set)
        waits = askers.submit(rows_of, lone, "SELECT max(k) FROM hits")
        gone.set()
        with pytest.raises(Cancelled):
            asked.result()
        assert waits.result() == [["b"]]
    assert not is_running(pid)


def test_an_asker_that_hangs_up_while_it_waits_is_forgotten(lone: QueryPool) -> None:
    rows_of(lone, "SELECT 1")
    gone = threading.Event()
    with ThreadPoolExecutor(1) as askers:
        asked = askers.submit(lone.ask, ENDLESS, cancelled=gone.is_set)
        with pytest.raises(Cancelled):
            lone.ask("SELECT 1", cancelled=lambda: True)
        gone.set()
        with pytest.raises(Cancelled):
            asked.result()


def test_too_many_queries_at_once_are_refused(filled: Filled) -> None:
    gone = threading.Event()
    with (
        filled.pool(workers=1, waiting=1, patience_seconds=0.3, seconds=60.0) as pool,
        ThreadPoolExecutor(1) as askers,
    ):
        wait_until(lambda: bool(pool.processes()))
        rows_of(pool, "SELECT 1")
        asked = askers.submit(pool.ask, ENDLESS, cancelled=gone.is_set)
        told = "the engine answers 1 query at once and others wait already; ask again in a moment"
        with pytest.raises(TooManyQueries, match=told):
            pool.ask("SELECT 1")  # it waits, and then not any longer
        gone.set()
        with pytest.raises(Cancelled):
            asked.result()
    with filled.pool(workers=1, waiting=0) as pool, pytest.raises(TooManyQueries):
        pool.ask("SELECT 1")


def test_processes_that_do_not_start_are_told(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with filled.pool(workers=1, patience_seconds=1.0) as pool:
        wait_until(lambda: pool._failure is not None)
        with pytest.raises(EngineError, match="a process that answers queries does not start"):
            pool.ask("SELECT 1")
        monkeypatch.undo()
        wait_until(lambda: bool(pool.processes()))
        assert rows_of(pool, "SELECT 1") == [[1]]


def test_closing_ends_queries_under_way(filled: Filled) -> None:
    pool = filled.pool(workers=1, seconds=60.0)
    rows_of(pool, "SELECT 1")
    (pid,) = pool.processes()
    with ThreadPoolExecutor(1) as askers:
        asked = askers.submit(pool.ask, ENDLESS)
        wait_until(lambda: pool._idle.empty())
        pool.close()
        with pytest.raises((WorkerLost, EngineError)):
            asked.result()
    assert not is_running(pid)


ENGINE = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from asking import Filled, rows_of
filled = Filled(Path(sys.argv[2]))
pool = filled.pool(seconds=600.0)
rows_of(pool, "SELECT 1")
while len(pool.processes()) < 2:
    pass
threading.Thread(target=pool.ask, args=(sys.argv[3],), daemon=True).start()
while pool._idle.qsize() > 1:
    pass
print(*pool.processes(), flush=True)
sys.stdin.read()
"""


def test_processes_end_with_the_engine_however_it_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENGINE, str(Path(__file__).parent), str(tmp_path), ENDLESS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stdout is not None
        pids = list(map(int, engine.stdout.readline().split()))
        assert len(pids) == 2
        assert all(map(is_running, pids))
        engine.kill()
    wait_until(lambda: not any(map(is_running, pids)))
