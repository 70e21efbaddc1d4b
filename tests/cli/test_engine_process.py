"""A running engine, met from outside: one real process that most of these tests share.

In the order of the file: the last tests kill the engine, let another take over, and interrupt it.
"""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.commands import HEADRACE, EngineProcess, Run, in_terminal

pytestmark = pytest.mark.spark

PAYMENTS = [
    '{"id": "1", "card": "a", "amount": "1.50", "country": "DE", "ts": "2026-01-01T12:00:10Z"}',
    '{"id": "2", "card": "a", "amount": "2.50", "country": "DE", "ts": "2026-01-01T12:00:50Z"}',
    "no JSON at all",
    # It moves the watermark past the window of the next one, which is late.
    '{"id": "3", "card": "a", "amount": 4, "country": "FR", "ts": "2026-01-01T12:30:00Z"}',
    '{"id": "4", "card": "a", "amount": 8, "country": "DE", "ts": "2026-01-01T12:00:20Z"}',
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, process: Run) -> Path:
    folder: Path = tmp_path_factory.mktemp("project") / "shop"
    assert process("init", folder).code == 0
    lines = "\n".join(PAYMENTS)
    assert process("append", "payments", "--partition", 0, cwd=folder, input=lines).code == 0
    return folder


@pytest.fixture(scope="module")
def engine(shop: Path, start_engine: Callable[..., EngineProcess]) -> EngineProcess:
    return start_engine(shop).wait_until("turn=1 ")


def ask(headrace: Run, engine: EngineProcess, *arguments: object) -> Any:
    answer = headrace(*arguments, "--json", "-p", engine.folder)
    assert answer.code == 0, answer.err
    return answer.rows


def test_the_log_has_one_line_per_turn(engine: EngineProcess) -> None:
    (line,) = [line for line in engine.err.splitlines() if " turn=1 " in line]
    fields = dict(word.split("=") for word in line.split()[1:])
    assert {name: fields[name] for name in ("unit", "gear", "records", "late", "dead")} == {
        "unit": "main",
        "gear": "short",
        "records": "5",
        "late": "1",
        "dead": "1",
    }
    steps = ("plan", "read", "stamp", "step", "fold", "stage", "commit", "publish")
    assert [name for name in fields if name.endswith("_ms")] == [f"{step}_ms" for step in steps]


def test_queries_go_to_the_running_engine(headrace: Run, engine: EngineProcess) -> None:
    rows = ask(headrace, engine, "sql", "FROM spend_per_minute ORDER BY minute")
    assert [(row["minute"], row["country"], row["n"], row["total"]) for row in rows] == [
        ("2026-01-01T12:00:00Z", "DE", 2, "4.00"),
        ("2026-01-01T12:30:00Z", "FR", 1, "4.00"),
    ]
    for statement in ("COPY (SELECT 1) TO '/tmp/x'", "FROM read_csv('/etc/passwd')"):
        assert headrace("sql", statement, "-p", engine.folder).code == 2


def test_a_query_of_the_running_engine_runs_in_another_process_and_says_its_position(
    headrace: Run, engine: EngineProcess, tmp_path: Path
) -> None:
    address = engine.address
    headers = {"Authorization": f"Bearer {address['token']}"}
    question = {"sql": "SELECT count(*) AS n FROM spend_per_minute"}
    answer = httpx.post(f"{address['url']}/v1/sql", json=question, headers=headers, trust_env=False)
    told = answer.json()
    assert told["commit"] > 0
    assert told["positions"]["spend_per_minute"].startswith("payments/0@")
    missing = headrace("sql", "FROM headrace.units", "-p", engine.folder)
    assert missing.code == 2
    assert missing.err.startswith('error: there is no table "headrace.units"; there are: spend_')
    file = tmp_path / "spend.csv"
    exported = headrace("export", "spend_per_minute", "-o", file, "-p", engine.folder, "--json")
    assert exported.rows[0]["rows"] == told["rows"][0][0]
    assert len(file.read_text().splitlines()) == told["rows"][0][0] + 1


def test_only_the_token_opens_the_engine(engine: EngineProcess) -> None:
    address = engine.address
    for token, status in ((address["token"], 200), (address["token"][:-1], 401), ("x", 401)):
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{address['url']}/v1/status", headers=headers, trust_env=False)
        assert answer.status_code == status


def test_status_shows_positions_clocks_counters_and_the_last_turn(
    headrace: Run, engine: EngineProcess
) -> None:
    (found,) = ask(headrace, engine, "status")
    assert [stream["readers"] for stream in found["streams"]] == [["spend_per_minute"]]
    (stream,) = found["streams"]
    counted = {"read": 5, "accepted": 4, "dead": 1, "duplicate": 0, "unguarded": 0}
    assert stream["counters"] == counted
    first = stream["partitions"][0]
    assert (first["position"], first["end_offset"], first["lag_records"]) == (5, 5, 0)
    assert first["clock_us"] - first["watermark_us"] == 30_000_000
    (view,) = found["views"]
    counters = {"seen": 4, "skipped": 0, "dead": 0, "matched": 4}
    counters |= {"pairs": 4, "folded": 3, "late": 1, "corrected": 0}
    assert view["counters"] == counters
    assert (view["state"], view["unit"], view["state_rows"]) == ("live", "main", 2)
    (unit,) = found["units"]
    assert unit["turn"] >= 1  # the next ones, without records, are those of idle partitions
    assert "spend_per_minute" in headrace("status", "-p", engine.folder).out


def test_what_is_appended_becomes_visible(
    headrace: Run, process: Run, engine: EngineProcess
) -> None:
    line = '{"id": "5", "card": "b", "amount": 1, "country": "IT", "ts": "2026-01-01T12:31:00Z"}'
    process("append", "payments", "--partition", 1, cwd=engine.folder, input=line)
    deadline = time.monotonic() + 30
    query = "SELECT n FROM spend_per_minute WHERE country = 'IT'"
    while ask(headrace, engine, "sql", query) != [{"n": 1}]:
        assert time.monotonic() < deadline, engine.err


def test_explain_prints_the_plan_that_runs(headrace: Run, engine: EngineProcess) -> None:
    (plan,) = ask(headrace, engine, "explain", "spend_per_minute")
    read, narrow, fold, publish = plan["stages"]
    assert (read["stage"], read["stream"]) == ("read", "payments")
    assert (narrow["stage"], narrow["window"]["size_us"]) == ("narrow", 60_000_000)
    assert (publish["stage"], publish["late"]) == ("publish", "spend_per_minute.late")
    assert fold["table"] == f"spend_per_minute__{plan['version']}"
    count, total = fold["aggregates"]
    assert (count["call"], total["call"]) == ("count(*)", "sum(amount)")
    (state,) = total["states"]
    assert state["partial"] == "CAST(sum(a1) AS DECIMAL(38,2))"
    text = headrace("explain", "-p", engine.folder).out
    assert "lateness   closed to a record once the clock is 630 s past its end" in text
    answer = headrace("explain", "nope", "-p", engine.folder)
    assert (answer.code, answer.err) == (
        2,
        "error: nope: no such view; there are: spend_per_minute\n",
    )


def test_a_second_run_is_refused_and_told_the_pid(process: Run, engine: EngineProcess) -> None:
    answer = process("run", cwd=engine.folder)
    assert answer.code == 3
    assert f"an engine serves this project already (pid {engine.process.pid}, since" in answer.err
    assert engine.process.poll() is None


def test_the_audit_of_a_running_engine_holds_and_gives_way_to_it(
    headrace: Run, engine: EngineProcess, niceness: list[int]
) -> None:
    # With a Spark of its own: what was appended last is waited for.
    answer = headrace("audit", "--json", "-p", engine.folder)
    assert answer.code == 0, answer.err
    (found,) = answer.rows
    assert (found["ok"], found["records"], found["tables"]) == (True, 6, 1)
    assert (found["differences"], found["unread"]) == ([], [])
    assert niceness == [10]


def test_status_and_answers_fit_a_terminal_of_80_columns(engine: EngineProcess) -> None:
    status = in_terminal("status", cwd=engine.folder)
    # The watermark is known once the partitions without records are idle.
    assert [line.strip("─").rstrip() for line in status[1:]] == [
        "",
        "stream    state  lag  read  dead  watermark",
        "",
        f"payments  live     0     6     1  {status[4].split()[-1]}",
        "",
        "view              state  lag  state rows  late  closed before",
        "",
        f"spend_per_minute  live     0           3     1  {status[8].split()[-1]}",
        "",
        status[10],
    ]
    assert re.fullmatch(r"last turn: \d records? in [\d,]+ ms \(turn \d+, short\)", status[10])
    (found,) = [
        json.loads(line) for line in in_terminal("status", "--json", cwd=engine.folder) if line
    ]
    steps = list(found["units"][0]["last"]["milliseconds"])
    assert steps[-2:] == ["commit", "publish"]
    query = "SELECT minute, country, n, total, repeat('long ', 20) AS text FROM spend_per_minute"
    answer = in_terminal("sql", f"{query} ORDER BY minute", cwd=engine.folder)
    assert answer[2] == (
        "2026-01-01T12:00:00Z  DE       2   4.00  long long long long long long long lon…"
    )
    assert {len(line) <= 80 for line in (*status, *answer)} == {True}
    refused = in_terminal("sql", "FROM payments", cwd=engine.folder)
    assert " ".join(refused) == (
        "error: payments is a stream: its records are read from the topic payments, and are no "
        "table. Ask a view that reads it: spend_per_minute. `headrace tail payments` shows the "
        "records."
    )


LARGE = """
CREATE MATERIALIZED VIEW large AS SELECT card, count(*) AS n FROM payments GROUP BY card;
"""


def test_an_edited_definition_is_noticed(headrace: Run, engine: EngineProcess) -> None:
    file = engine.folder / "payments.sql"
    file.write_text(file.read_text() + LARGE)
    told = "definitions on disk differ (view large new): restart, or `headrace run --watch`"
    engine.wait_until(f"warning: {told}\n")
    assert " ".join(in_terminal("status", cwd=engine.folder)[1:3]).strip() == told
    (found,) = ask(headrace, engine, "status")
    assert found["definitions"] == {"changed": ["view large new"], "problems": []}
    assert (found["engine"]["pid"], found["engine"]["watches"]) == (engine.process.pid, False)


def test_after_kill_9_another_engine_takes_over_and_ctrl_c_ends_it_cleanly(
    headrace: Run, engine: EngineProcess, start_engine: Callable[..., EngineProcess]
) -> None:
    dead = engine.address
    engine.signal(signal.SIGKILL)
    # Nobody runs now: the store is asked directly, and the dead engine's address is not used.
    assert ask(headrace, engine, "sql", "SELECT count(*) AS n FROM spend_per_minute") == [{"n": 3}]
    heir = start_engine(engine.folder, "--watch").wait_until("serving shop on ")
    assert heir.address["pid"] != dead["pid"]
    assert heir.address["token"] == dead["token"]  # the owner's; browsers stay logged in
    assert ask(headrace, heir, "sql", "SELECT count(*) AS n FROM spend_per_minute") == [{"n": 3}]
    heir.wait_until("large: level, and swapped in")
    _edit_while_it_watches(headrace, heir)
    (record,) = ask(headrace, heir, "audit")
    assert record["ok"]
    assert heir.signal(signal.SIGINT) == 130
    assert "Traceback" not in heir.err
    assert not (heir.folder / ".headrace/engine.json").exists()


def _edit_while_it_watches(headrace: Run, engine: EngineProcess) -> None:
    """Edit to nonsense, which changes nothing; then to something that holds; then take it away."""
    file = engine.folder / "payments.sql"
    good = file.read_text()
    for nonsense, told in (
        (good.replace("count(*) AS n FROM payments GROUP BY card", "FROM"), "are refused: "),
        (good.replace("SELECT card, count(*)", "SELECT card + 1, count(*)"), "are refused: "),
    ):
        file.write_text(nonsense)
        before = engine.err.count("the running ones go on")
        deadline = time.monotonic() + 60
        while engine.err.count("the running ones go on") == before:
            assert time.monotonic() < deadline, engine.err
            time.sleep(0.1)
        assert told in engine.err
    query = "SELECT * EXCLUDE (_events, _closed) FROM large ORDER BY card"
    old = [{"card": "a", "n": 4}, {"card": "b", "n": 1}]
    assert ask(headrace, engine, "sql", query) == old
    file.write_text(good.replace("SELECT card, count(*) AS n", "SELECT card, max(amount) AS most"))
    deadline = time.monotonic() + 60
    new = [{"card": "a", "most": "8.00"}, {"card": "b", "most": "1.00"}]
    while (found := ask(headrace, engine, "sql", query)) != new:
        assert found == old  # it serves until the new one is level
        assert time.monotonic() < deadline, engine.err
    assert "definitions on disk differ (view large edited): applied after this turn" in engine.err
    file.write_text(good.replace(LARGE, ""))
    engine.wait_until("(view large removed): restart the engine to apply this; `--watch` does not")
    assert ask(headrace, engine, "sql", query) == new


def test_ctrl_c_while_spark_starts_ends_at_once(shop: Path) -> None:
    with subprocess.Popen(
        [HEADRACE, "run", "--json"], cwd=shop, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None
        assert json.loads(run.stderr.readline())["message"] == "starting Spark"
        run.send_signal(signal.SIGINT)
        told = run.stderr.read()
    assert run.returncode == 130
    assert "stopped before the first turn" in told
    assert "Traceback" not in told
