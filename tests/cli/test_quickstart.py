"""examples/quickstart: the views hold what a plain query over the same JSON gives.

What `headrace init` prints as the next steps is pasted into a shell as it stands.

Method: the commands of its README run as real processes, and again in this one, on Kafka; the
expected rows come from DuckDB, which reads the file itself and knows nothing of streams, turns or
Spark.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest
from broker import Broker

from cli.commands import HEADRACE, Run

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"

PLAIN = """
WITH payments AS (
  FROM read_json('{file}', columns = {{
    id: 'VARCHAR', card: 'VARCHAR', amount: 'DECIMAL(12,2)', country: 'VARCHAR', ts: 'TIMESTAMP'}}))
"""
PLAIN_SPEND = """
SELECT strftime(time_bucket(INTERVAL 1 MINUTE, ts), '%Y-%m-%dT%H:%M:%SZ') AS minute, country,
  count(*) AS n, CAST(sum(amount) AS VARCHAR) AS total
FROM payments GROUP BY ALL ORDER BY minute, country
"""
PLAIN_LARGE = """
SELECT card, count(*) AS n, CAST(sum(amount) AS VARCHAR) AS total,
  CAST(max(amount) AS VARCHAR) AS largest, epoch_us(min(ts)) AS first_us
FROM payments WHERE amount >= 20 GROUP BY card HAVING count(*) > 1 ORDER BY card
"""


def plain(query: str) -> list[dict[str, object]]:
    text = PLAIN.format(file=QUICKSTART / "payments.jsonl") + query
    return duckdb.sql(text).to_arrow_table().to_pylist()


def on_kafka(folder: Path, broker: Broker) -> None:
    """Move the log of a project to Kafka: three lines of headrace.toml."""
    toml = folder / "headrace.toml"
    toml.write_text(
        toml.read_text()
        + f"""
[log]
kind = "kafka"
prefix = "{folder.parent.name}."
[log.client]
"bootstrap.servers" = "{broker.bootstrap}"
"""
    )


@pytest.mark.spark
@pytest.mark.parametrize("log", ["embedded", "kafka"])
def test_the_readme_runs_and_the_views_equal_a_plain_query(
    tmp_path: Path,
    process: Run,
    headrace: Run,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    log: str,
) -> None:
    folder = tmp_path / "quickstart"
    shutil.copytree(QUICKSTART, folder, ignore=shutil.ignore_patterns(".headrace"))
    monkeypatch.chdir(folder)
    run = process
    if log == "kafka":
        on_kafka(folder, request.getfixturevalue("broker"))
        run = headrace
    blocks = re.findall(r"```sh\n(.*?)```", (QUICKSTART / "README.md").read_text(), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert [command.split()[:2] for command in commands] == [
        ["headrace", "append"],
        ["headrace", "run"],
        ["headrace", "sql"],
        ["headrace", "audit"],
        ["headrace", "init"],
    ]
    outputs = []
    for command in commands:
        answer = run(*shlex.split(command)[1:])
        assert answer.code == 0, answer.err
        outputs.append(answer.out)
    shown = re.findall(r"```text\n(.*?)```", (QUICKSTART / "README.md").read_text(), re.DOTALL)
    assert [block.split() for block in shown] == [outputs[i].split() for i in (0, 2, 3)]

    query = "SELECT minute, country, n, total FROM spend_per_minute ORDER BY minute, country"
    spend = headrace("sql", query, "--json", "-p", folder).rows
    assert len(spend) > 50
    assert spend == plain(PLAIN_SPEND)
    query = "SELECT * EXCLUDE (first_at, _events, _closed), epoch_us(first_at) AS first_us FROM"
    query += " large_payments ORDER BY card"
    large = headrace("sql", query, "--json", "-p", folder).rows
    assert len(large) > 20
    assert large == plain(PLAIN_LARGE)


@pytest.mark.spark
def test_what_init_prints_can_be_pasted_into_a_shell(tmp_path: Path, process: Run) -> None:
    printed = process("init", "my shop", cwd=tmp_path).out
    steps = [line.strip() for line in printed.splitlines() if line.startswith("  ")]
    assert steps[0] == "cd 'my shop'"
    commands = [shlex.split(step)[1] for step in steps[1:]]
    assert commands == ["append", "run", "sql", "tail", "tail", "status"]
    path = f"{Path(HEADRACE).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(steps),
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr  # of Java
    assert "appended 300 records to payments" in done.stdout
    assert '"amount": "37.25", "country": "DE", "ts": "2026-01-01T12:00:30.000Z"' in done.stdout
    assert "2026-01-01T12:00:00Z  AT" in done.stdout
    *_, summary = done.stdout.split("my shop: no engine runs; `headrace run` starts one\n\n")
    rows = [line.split() for line in summary.splitlines()]
    assert rows[2][:5] == ["payments", "live", "0", "300", "1"]  # one is dead
    assert rows[6][0] == "spend_per_minute"
    assert rows[6][4] == "1"  # and one late
    assert re.search(r"^last turn: 300 records in [\d,]+ ms \(turn 1, short\)$", summary, re.M)
